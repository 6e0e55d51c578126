"""Memory, time and power of single layers and of small networks, as an assignment on GPU resources asked for them."""
