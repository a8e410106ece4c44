# From a CSV file to predictions in two lines: models, trials and predictions stay in this folder.
# iris.csv: R. A. Fisher's measurements of 150 flowers, 1936.
set -e
cp "$(dirname "$0")/iris.csv" .
span-hpo tune iris.csv --target species --trials 40 --seed 0 --out flowers --force
span-hpo predict flowers.json iris.csv --proba --out predictions.csv --force
head -n 3 predictions.csv
