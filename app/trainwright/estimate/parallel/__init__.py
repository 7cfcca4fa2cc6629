"""A step on several GPUs: what each of them holds, and what they exchange."""
