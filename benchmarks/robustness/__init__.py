"""How robust the package is: proofs against an independent truth, files and runs under attack."""
