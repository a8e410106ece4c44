# Go from a CSV file to predictions in two lines. All files are written to the current folder.
# The file iris.csv holds R. A. Fisher's measurements of 150 flowers from 1936.
set -e
cp "$(dirname "$0")/iris.csv" .
span-hpo tune iris.csv --target species --trials 40 --seed 0 --out flowers --force
span-hpo predict flowers.json iris.csv --proba --out predictions.csv --force
head -n 3 predictions.csv
