"""What the public functions accept, give back and refuse; how exact they are is tested in `exactness`."""
