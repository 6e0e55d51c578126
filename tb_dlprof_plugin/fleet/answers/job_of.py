from tb_dlprof_plugin.fleet.job import Job
def job_of(facts: list) -> Job: raise NotImplementedError
