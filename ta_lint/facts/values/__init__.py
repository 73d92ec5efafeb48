"""What a value is: what a name means, what a class, a call or an expression makes, what a layer holds."""
