"""What each protocol calls its requests and its errors, and how one of its requests fails."""
