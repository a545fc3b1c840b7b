// The handlers of cron jobs. A job is a session of its token's owner, and so are its runs.
import type { CronJobOptions, CronRow, CronRun } from '../../cron/index.ts'
import { type ApiAnswer, type ApiRequest, checkAgentReach, mayReach, OWNER, requireCard } from '../server-host.ts'
import { HttpRefusal, missingSessionRefusal } from '../refusals.ts'
import type { CronBody, CronChangedAnswer, CronJobsAnswer } from '../wire.ts'

/** The agent of a job's session. */
const CRON = 'cron'

export async function handleCron({ host, principal, query }: ApiRequest): Promise<ApiAnswer> {
  const { cron } = await import('../../cron/index.ts')
  const own = principal.reach === 'own' ? { where: { [OWNER]: principal.name } } : {}
  const { jobs, next } = await cron(host.harness).list({ limit: 200, ...query, ...own })
  return { json: { jobs, next, now: host.store.now() } satisfies CronJobsAnswer }
}

export async function handleChangeCron(asked: ApiRequest): Promise<ApiAnswer> {
  const { action, session, job, folder } = asked.body as CronBody
  if (action === 'add') {
    if (job === undefined) throw new HttpRefusal(400, 'invalid_input', 'Give the job to add.')
    return addJob(asked, job as unknown as CronJobOptions, folder)
  }
  if (session === undefined) throw new HttpRefusal(400, 'invalid_input', 'Name the session of the job.')
  const card = await requireCard({ ...asked, params: { id: session } })
  const { cron } = await import('../../cron/index.ts')
  const jobs = cron(await asked.host.harnessOf(card))
  const name = { session }
  if (action === 'remove') {
    await jobs.remove(name)
    return cronAnswer(null)
  }
  if (action === 'run') {
    const run = await jobs.run(name)
    return cronAnswer(await jobs.get(name), run)
  }
  return cronAnswer(action === 'on' ? await jobs.on(name) : await jobs.off(name))
}

/** A token that reaches only its own sessions has job names of its own. */
async function addJob(
  { host, principal }: ApiRequest,
  job: CronJobOptions,
  wanted: string | undefined,
): Promise<ApiAnswer> {
  const { cron } = await import('../../cron/index.ts')
  const prefix = principal.reach === 'own' ? `${principal.name}:` : ''
  const known = await host.store.card(`${prefix}${CRON}.${job.name}`)
  if (known && !mayReach(principal, known)) throw missingSessionRefusal(known.session)
  const begun = await host.begin({ agent: CRON, by: principal, ...(wanted === undefined ? {} : { folder: wanted }) })
  checkAgentReach(principal, begun.harness, job.agent)
  const owner = { [OWNER]: principal.name }
  const folder = begun.folder === undefined ? {} : { folder: begun.folder }
  const options = { origin: { labels: owner, metadata: owner, ...folder }, ...(prefix === '' ? {} : { prefix }) }
  return cronAnswer(await cron(begun.harness, options).add(job))
}

function cronAnswer(row: CronRow | null, run?: CronRun): ApiAnswer {
  const began = run && 'session' in run ? { began: run.session } : {}
  const why = run && !('session' in run) ? ('skipped' in run ? run.skipped : 'It waits for an earlier run.') : undefined
  const json: CronChangedAnswer = {
    job: row,
    ...began,
    ...(why === undefined ? {} : { why }),
  }
  return { json }
}
