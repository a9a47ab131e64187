"""What the public functions accept, return and refuse; `exactness` tests how exact they are."""
