LIMITS = "limit"
