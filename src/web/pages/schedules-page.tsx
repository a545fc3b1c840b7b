// The schedules page: cron jobs, and sessions that wake by themselves, with each time and reason, and buttons to wake
// them now or to drop a wake.
import { Link } from 'wouter'
import type { DueRow, ScheduledRow } from '../../server/wire.ts'
import { countNoun } from '../../view/shown-text.ts'
import { apiActions } from '../data/api.ts'
import { useRefusal } from '../data/use-refusal.ts'
import { queries, useCronJobs, useDue } from '../data/queries.ts'
import { Button } from '../parts/button.tsx'
import { Ago, MomentText } from '../parts/figures.tsx'
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
  return (
    <div className="page">
      <PageHead title="Schedules" about={data ? aboutText(jobs.length, rows.length) : undefined} />
      {isPending ? <Loading what="Loading schedules" /> : null}
      {isError && !data ? <ErrorPanel error={error} onRetry={() => void refetch()} /> : null}
      {data && rows.length + jobs.length === 0 ? (
        <Empty title="Nothing is scheduled" command="terret wake latest --in 2h">
          Sessions that sleep until a moment, or try again because a provider is away, come here.
        </Empty>
      ) : null}
      {refusal !== null && rows.length + jobs.length > 0 ? <p className="page-note dim">{refusal}</p> : null}
      <div className="schedules">
        <CronJobs jobs={jobs} refusal={refusal} />
        {rows.length === 0 ? null : (
          <ul className="dues">
            {rows.map((row) => (
              <DueSession key={row.session} row={row} isRefused={refusal !== null} />
            ))}
          </ul>
        )}
      </div>
    </div>
  )
}

/** Reads the list again after a change. */
async function change(act: Promise<unknown>): Promise<void> {
  await act
  await queries.invalidateQueries({ queryKey: ['due'] })
}

function DueSession({ row, isRefused }: { readonly row: DueRow; readonly isRefused: boolean }) {
  const { session, agent, due, title, reason, tries, scheduled = [] } = row
  return (
    <li className="due">
      <strong>
        <Ago at={due} />
      </strong>
      <span className="due-title">
        <Link href={`/s/${encodeURIComponent(session)}`}>
          <Text text={title ?? session} />
        </Link>
        {scheduled.length === 0 || tries !== undefined ? (
          <span className="dim">
            <Text text={reason ?? 'looks again'} />
          </span>
        ) : null}
      </span>
      <span className="due-agent dim">
        <Text text={agent} />
      </span>
      <Button size="small" disabled={isRefused} onPress={() => toastResult(change(apiActions.wake(session)), 'Woken')}>
        Wake now
      </Button>
      {scheduled.length === 0 ? null : (
        <ul className="due-times">
          {scheduled.map((each) => (
            <DueTime key={each.key ?? `${each.due} ${each.reason}`} {...{ session, each, isRefused }} />
          ))}
        </ul>
      )}
    </li>
  )
}

type DueTimeProps = { readonly session: string; readonly each: ScheduledRow; readonly isRefused: boolean }

/** A message for later cannot be taken back, so it has no button. */
function DueTime({ session, each: { key, due, reason }, isRefused }: DueTimeProps) {
  return (
    <li className="due-time">
      <span className="dim">
        <MomentText at={due} />
      </span>
      <span className="due-reason">
        {key === undefined ? <span className="dim">Message: </span> : null}
        <Text text={reason} />
      </span>
      {key === undefined ? null : (
        <Button
          size="small"
          kind="quiet"
          disabled={isRefused}
          onPress={() => toastResult(change(apiActions.unschedule(session, { key })), 'Cancelled')}
        >
          Cancel
        </Button>
      )}
    </li>
  )
}
