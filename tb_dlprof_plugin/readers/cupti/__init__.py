"""From the activities that CUPTI records to Timelines: what Nsight Systems' and nvprof's databases have in common."""
