"""What the dashboards themselves have received, read back with their own packages."""
