"""What every policy decides, recorded as hashes: `make golden` compares, `UPDATE=1` writes."""
