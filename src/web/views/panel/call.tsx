// What the panel says of a call: its arguments exactly, its result, what it changed, who allowed it, and its times.
import { Link } from 'wouter'
import type { Event, Json as JsonValue } from '../../../kernel/index.ts'
import type { WirePending } from '../../../server/wire.ts'
import { oneLine } from '../../../view/clean.ts'
import { editTexts } from '../../../view/edited.ts'
import { isObject, listOf, stringOf } from '../../../view/json.ts'
import { childIdOf } from '../../../view/spans/span.ts'
import type { CallRow } from '../../../view/timeline.ts'
import { usdOf } from '../../../view/usd.ts'
import { Changes, Diff } from '../../parts/diff.tsx'
import { Ago, Money, Took } from '../../parts/figures.tsx'
import { Json } from '../../parts/json.tsx'
import { Status } from '../../parts/status.tsx'
import { Text } from '../../parts/text.tsx'
import { failureName, reviewOf } from '../session/call-line.tsx'
import { FileChip, ResultContent, Whole } from '../session/files.tsx'
import { Clock, Facts, Section } from './part.tsx'

type Of<T extends Event['type']> = Extract<Event, { type: T }>
type Props = {
  readonly session: string
  readonly row: CallRow
  readonly events: readonly Event[]
  readonly pending: WirePending | null
  readonly dead: string | null
}

const EFFECTS = {
  read: 'reads only',
  idempotent: 'may run again',
  once: 'once: never run again by itself',
} as const

export function CallFacts({ session, row, events, pending, dead }: Props) {
  const { args, effect, cost, at, startedAt, endedAt, starts, child, failure, call } = row
  const result = events.findLast((event): event is Of<'agent.tool_result'> => event.type === 'agent.tool_result')
  return (
    <>
      {row.state === 'asked' || pending ? <Waiting session={session} row={row} pending={pending} dead={dead} /> : null}
      <Section name="Arguments">
        <Json value={args} open={3} />
      </Section>
      {row.edited ? (
        <Section name={`Edited by ${oneLine(row.edited.by)}`}>
          <Diff {...editTexts(args, row.edited.args)} />
        </Section>
      ) : null}
      {pending?.preview === undefined ? (
        <Edits args={row.edited?.args ?? args} />
      ) : (
        <Changes preview={pending.preview} />
      )}
      {result ? (
        <Section name="Result">
          {failure === null ? null : (
            <p className={failureName(row.state)}>
              <Text text={failure} />
            </p>
          )}
          <ResultContent session={session} result={result} events={events} />
          <Whole session={session} metadata={result.metadata} />
          <div className="panel-row">
            {(result.parts ?? []).map((file) => (
              <FileChip key={file.hash} session={session} file={file} />
            ))}
          </div>
        </Section>
      ) : null}
      <Decisions events={events} />
      <Section name="Times">
        <Facts
          rows={[
            [
              'Call',
              <span key="c" className="mono">
                {call}
              </span>,
            ],
            ['Effect', EFFECTS[effect]],
            ['Proposed', <Clock key="p" at={at} />],
            ['Started', startedAt === null ? null : <Clock key="s" at={startedAt} />],
            ['Ended', endedAt === null ? null : <Clock key="e" at={endedAt} />],
            ['Took', startedAt === null || endedAt === null ? null : <Took ms={endedAt - startedAt} />],
            ['Starts', starts > 1 ? String(starts) : null],
            ['Cost', cost > 0 ? <Money usd={usdOf(cost)} /> : null],
            [
              'Child',
              child === null ? null : (
                <Link key="l" href={`/s/${encodeURIComponent(childIdOf(session, call))}`}>
                  <Text text={child} /> →
                </Link>
              ),
            ],
          ]}
        />
      </Section>
    </>
  )
}

function Waiting({ session, row, pending, dead }: Pick<Props, 'session' | 'row' | 'pending' | 'dead'>) {
  const { n = 1, votes = [], roles = [], expiresAt, needs = 'approval' } = pending ?? {}
  return (
    <div className="side-waits">
      <Status of="asked" words={needs === 'answer' ? 'waits for an answer' : 'waits for approval'} />
      <Facts
        rows={[
          [
            'Yes so far',
            n > 1 ? (
              <Text key="v" text={`${votes.length} of ${n}${votes.length > 0 ? `: ${votes.join(', ')}` : ''}`} />
            ) : null,
          ],
          ['Roles', roles.length > 0 ? <Text key="r" text={roles.join(', ')} /> : null],
          ['Expires', typeof expiresAt === 'number' ? <Ago key="x" at={expiresAt} /> : null],
        ]}
      />
      {dead === null ? (
        <Link href={reviewOf(session, row.call)} className="button primary normal">
          Review
        </Link>
      ) : (
        <p className="small">{dead}</p>
      )}
    </div>
  )
}

/** Longer texts are not compared here. */
const DIFF_CHARS = 200_000

/** What a call of an editing tool replaces, as its arguments say it. */
function Edits({ args }: { readonly args: JsonValue }) {
  if (!isObject(args)) return null
  const edits = [args, ...listOf(args['edits']).filter(isObject)].flatMap((each) => {
    const { old_string: before, new_string: after } = each
    if (typeof before !== 'string' || typeof after !== 'string') return []
    if (before.length + after.length > DIFF_CHARS) return []
    return [{ path: stringOf(each['path']), before, after }]
  })
  if (edits.length === 0) return null
  return (
    <Section name="Changes">
      {edits.map(({ path, before, after }, i) => (
        <div key={i}>
          {path === '' ? null : <Text mono text={path} />}
          <Diff before={before} after={after} />
        </div>
      ))}
    </Section>
  )
}

function Decisions({ events }: { readonly events: readonly Event[] }) {
  const said = events.filter((event): event is Of<'user.tool_confirmation'> => event.type === 'user.tool_confirmation')
  const answers = events.filter(
    (event): event is Of<'user.custom_tool_result'> => event.type === 'user.custom_tool_result',
  )
  if (said.length + answers.length === 0) return null
  return (
    <Section name={said.length > 0 ? 'Approval' : 'Answer'}>
      {said.map(({ seq, allow, by, role, why, at }) => (
        <Facts
          key={seq}
          rows={[
            [allow ? 'Allowed by' : 'Denied by', <Text key="b" text={role === undefined ? by : `${by} as ${role}`} />],
            ['When', <Clock key="w" at={at} />],
            ['Why', why === undefined ? null : <Text key="y" text={why} />],
          ]}
        />
      ))}
      {answers.map(({ seq, by, at, ok }) => (
        <Facts
          key={seq}
          rows={[
            [ok ? 'Answered by' : 'Failed by', <Text key="b" text={by ?? 'a program'} />],
            ['When', <Clock key="w" at={at} />],
          ]}
        />
      ))}
    </Section>
  )
}
