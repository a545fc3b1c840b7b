// The schedules page: cron jobs, and sessions that wake by themselves, with time and reason, and a button to wake them
// now.
import { Link } from 'wouter'
import { countNoun } from '../../view/shown-text.ts'
import { apiActions } from '../data/api.ts'
import { useRefusal } from '../data/use-refusal.ts'
import { queries, useCronJobs, useDue } from '../data/queries.ts'
import { Button } from '../parts/button.tsx'
import { Ago } from '../parts/figures.tsx'
import { Empty, Loading, ErrorPanel } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { PageHead } from '../shell/page-shell.tsx'
import { toastResult } from '../shell/toasts.tsx'
import { CronJobs } from './cron-list.tsx'
import '../style/house.css'

function aboutText(jobs: number, rows: number): string {
  const sessions = `${countNoun(rows, 'session')} to look at again`
  return jobs === 0 ? sessions : `${countNoun(jobs, 'cron job')}, ${sessions}`
}

export function SchedulesPage() {
  const { data, isPending, isError, error, refetch } = useDue()
  const refusal = useRefusal('operator')
  // A running session also has a due time, so that it is found if its worker is lost. It is not a schedule.
  const jobs = useCronJobs().data?.jobs ?? []
  const ofJobs = new Set(jobs.map((job) => job.session))
  const rows = (data?.due ?? []).filter(
    ({ session, wakes, reason }) => (wakes > 0 || reason !== undefined) && !ofJobs.has(session),
  )
  const wake = async (session: string): Promise<void> => {
    await apiActions.wake(session)
    await queries.invalidateQueries({ queryKey: ['due'] })
  }
  return (
    <div className="page">
      <PageHead title="Schedules" about={data ? aboutText(jobs.length, rows.length) : undefined} />
      {isPending ? <Loading what="Loading schedules" /> : null}
      {isError && !data ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : null}
      {data && rows.length + jobs.length === 0 ? (
        <Empty title="Nothing is scheduled" command="terret list">
          Sessions that sleep until a moment, or try again because a provider is away, come here.
        </Empty>
      ) : null}
      {refusal !== null && rows.length + jobs.length > 0 ? <p className="page-note dim">{refusal}</p> : null}
      <div className="schedules">
        <CronJobs jobs={jobs} refusal={refusal} />
        {rows.length === 0 ? null : (
          <ul className="dues">
            {rows.map(({ session, agent, due, title, reason }) => (
              <li key={session} className="due">
                <strong>
                  <Ago at={due} />
                </strong>
                <span className="due-title">
                  <Link href={`/s/${encodeURIComponent(session)}`}>
                    <Text text={title ?? session} />
                  </Link>
                  <span className="dim">
                    <Text text={reason ?? 'looks again'} />
                  </span>
                </span>
                <span className="due-agent dim">
                  <Text text={agent} />
                </span>
                <Button size="small" disabled={refusal !== null} onPress={() => toastResult(wake(session), 'Woken')}>
                  Wake now
                </Button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  )
}
