"""What the handlers of every protocol are made of: how they register, what they get, what fails."""
