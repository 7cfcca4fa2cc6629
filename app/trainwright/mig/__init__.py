"""Multi-Instance GPU: layouts that are possible, jobs put onto them, and what creates them."""
