"""Values: what a name refers to, what a class, a call or an expression produces, what a layer holds."""
