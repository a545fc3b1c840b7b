// The cron jobs of the schedules page: the line as it was written, the next times in the reader's zone, how the last run
// ended, and buttons to run a job now and to switch it on or off.
import { Link } from 'wouter'
import { countNoun } from '../../view/shown-text.ts'
import type { CronBody, CronJobRow } from '../../server/wire.ts'
import { apiActions } from '../data/api.ts'
import { queries } from '../data/queries.ts'
import { Button } from '../parts/button.tsx'
import { Text } from '../parts/exact-text.tsx'
import { Ago } from '../parts/figures.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { toastResult } from '../shell/toasts.tsx'
import '../style/cron.css'

const DAY_TIMES = new Intl.DateTimeFormat('en', {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone

type CronJobsProps = {
  readonly jobs: readonly CronJobRow[]
  /** Why this token may not change them; null if it may. */
  readonly refusal: string | null
}

export function CronJobs({ jobs, refusal }: CronJobsProps) {
  if (jobs.length === 0) return null
  return (
    <ul className="cron-jobs" aria-label="Cron jobs">
      {jobs.map((job) => (
        <CronJobLine key={job.session} job={job} refusal={refusal} />
      ))}
    </ul>
  )
}

function CronJobLine({ job, refusal }: { readonly job: CronJobRow; readonly refusal: string | null }) {
  const { name, session, line, at, zone, agent, on, next, last, waiting } = job
  const change = (action: CronBody['action']): Promise<void> => changeJob(action, session)
  return (
    <li className={on ? 'cron-job' : 'cron-job off'}>
      <div className="cron-what">
        <span className="cron-name">
          <Link href={`/s/${encodeURIComponent(session)}`}>
            <Text text={name} />
          </Link>
          {on ? null : <span className="cron-off">off</span>}
        </span>
        <span className="cron-line">
          <code>{line ?? 'once'}</code>
          <span className="dim">
            <Text text={line === undefined ? DAY_TIMES.format(at) : zone} />
          </span>
        </span>
        <span className="dim cron-told">
          <Text text={agent} />: <Text text={job.prompt ?? JSON.stringify(job.input ?? '')} />
        </span>
      </div>
      <div className="cron-next">
        {next.length === 0 ? <span className="dim">No next time</span> : null}
        <ol title={`In your time zone, ${OWN_ZONE}`}>
          {next.map((time) => (
            <li key={time}>
              <time dateTime={new Date(time).toISOString()}>{DAY_TIMES.format(time)}</time>
            </li>
          ))}
        </ol>
      </div>
      <div className="cron-last">
        {last === null ? (
          <span className="dim">Has not run yet</span>
        ) : (
          <Link href={`/s/${encodeURIComponent(last.session)}`}>
            <StatusLabel of={last.outcome ?? 'running'} /> <Ago at={last.at} />
          </Link>
        )}
        {waiting === 0 ? null : <span className="dim">{countNoun(waiting, 'time')} waiting</span>}
        <SkippedNote job={job} />
      </div>
      <div className="cron-acts">
        <Button size="small" disabled={refusal !== null} onPress={() => toastResult(change('run'), 'Running')}>
          Run now
        </Button>
        <Button
          size="small"
          disabled={refusal !== null}
          onPress={() => toastResult(change(on ? 'off' : 'on'), on ? 'Switched off' : 'Switched on')}
        >
          {on ? 'Switch off' : 'Switch on'}
        </Button>
      </div>
    </li>
  )
}

/** The last time that was left out, if it is newer than the last run. */
function SkippedNote({ job }: { readonly job: CronJobRow }) {
  const [newest] = job.ticks
  if (newest === undefined || 'session' in newest) return null
  return (
    <span className="dim cron-skipped" title={newest.skipped}>
      Left out {DAY_TIMES.format(newest.at)}: <Text text={newest.skipped} />
    </span>
  )
}

/** Rejects with the reason if a run was asked for and did not begin. */
async function changeJob(action: CronBody['action'], session: string): Promise<void> {
  const { why } = await apiActions.cron({ action, session })
  await queries.invalidateQueries({ queryKey: ['cron'] })
  if (why !== undefined) throw new Error(why)
}
