"""Any web application as a world: what its goal file says, its server, its browser."""
