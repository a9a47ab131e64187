"""Which faults of attention does the doctor name? Faults are injected into small models, and it watches them train."""
