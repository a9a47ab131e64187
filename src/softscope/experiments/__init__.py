"""The questions of the source texts, each as a measurement that anyone can run; and the ledger of their claims."""
