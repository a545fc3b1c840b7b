// The facts of a call in the panel: its exact arguments, result, changes, approvals and times.
import { Link } from 'wouter'
import type { Event, EventOf, Json as JsonValue } from '../../../kernel/index.ts'
import type { WirePending } from '../../../server/wire.ts'
import { oneLine } from '../../../view/clean.ts'
import { editTexts } from '../../../view/argument-changes.ts'
import { isObject, asList, asString } from '../../../view/untrusted-json.ts'
import { childIdOf } from '../../../view/spans/span.ts'
import { SCRIPT } from '../../../view/script-cell.ts'
import type { CallRow } from '../../../view/timeline.ts'
import { usdOf } from '../../../view/usd.ts'
import { FileChanges, Diff } from '../../parts/diff-view.tsx'
import { Ago, Money, TimeTaken } from '../../parts/figures.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { ScriptProgram } from '../../parts/script-program.tsx'
import { StatusLabel } from '../../parts/status-label.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { failureClass, reviewAddress } from '../session/call-line.tsx'
import { FileChip, ResultContent, WholeResult } from '../session/result-files.tsx'
import { MomentTime, FactRows, PanelSection } from './panel-section.tsx'

type CallFactsProps = {
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

export function CallFacts({ session, row, events, pending, dead }: CallFactsProps) {
  const { args, effect, cost, at, startedAt, endedAt, starts, child, failure, call } = row
  const result = events.findLast((event): event is EventOf<'agent.tool_result'> => event.type === 'agent.tool_result')
  return (
    <>
      {row.state === 'asked' || pending ? (
        <WaitingCallFacts session={session} row={row} pending={pending} dead={dead} />
      ) : null}
      <ScriptOfCall session={session} row={row} />
      <PanelSection name="Arguments">
        <JsonTree value={args} open={3} />
      </PanelSection>
      {row.edited ? (
        <PanelSection name={`Edited by ${oneLine(row.edited.by)}`}>
          <Diff {...editTexts(args, row.edited.args)} />
        </PanelSection>
      ) : null}
      {pending?.preview === undefined ? (
        <Edits args={row.edited?.args ?? args} />
      ) : (
        <FileChanges preview={pending.preview} />
      )}
      {result ? (
        <PanelSection name="Result">
          {failure === null ? null : (
            <p className={failureClass(row.state)}>
              <Text text={failure} />
            </p>
          )}
          <ResultContent session={session} result={result} events={events} />
          <WholeResult session={session} metadata={result.metadata} />
          <div className="panel-row">
            {(result.parts ?? []).map((file) => (
              <FileChip key={file.hash} session={session} file={file} />
            ))}
          </div>
        </PanelSection>
      ) : null}
      <Decisions events={events} />
      <PanelSection name="Times">
        <FactRows
          rows={[
            [
              'Call',
              <span key="c" className="mono">
                {call}
              </span>,
            ],
            ['Effect', EFFECTS[effect]],
            ['Proposed', <MomentTime key="p" at={at} />],
            ['Started', startedAt === null ? null : <MomentTime key="s" at={startedAt} />],
            ['Ended', endedAt === null ? null : <MomentTime key="e" at={endedAt} />],
            ['Took', startedAt === null || endedAt === null ? null : <TimeTaken ms={endedAt - startedAt} />],
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
      </PanelSection>
    </>
  )
}

/** The program that the call runs, with what its lines do. */
function ScriptOfCall({ session, row }: Pick<CallFactsProps, 'session' | 'row'>) {
  const { args, edited, child, call, startedAt, endedAt } = row
  const ran = edited?.args ?? args
  if (child !== SCRIPT || !isObject(ran)) return null
  return (
    <PanelSection name="Program">
      <ScriptProgram
        program={asString(ran['script'])}
        cell={startedAt === null ? null : childIdOf(session, call)}
        isOver={endedAt !== null}
      />
    </PanelSection>
  )
}

function WaitingCallFacts({
  session,
  row,
  pending,
  dead,
}: Pick<CallFactsProps, 'session' | 'row' | 'pending' | 'dead'>) {
  const { n = 1, votes = [], roles = [], expiresAt, needs = 'approval' } = pending ?? {}
  return (
    <div className="side-waits">
      <StatusLabel of="asked" words={needs === 'answer' ? 'waits for an answer' : 'waits for approval'} />
      <FactRows
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
        <Link href={reviewAddress(session, row.call)} className="button primary normal">
          Review
        </Link>
      ) : (
        <p className="small">{dead}</p>
      )}
    </div>
  )
}

/** The longest texts that are compared here. */
const DIFF_CHARS = 200_000

/** The replacements that an editing tool's arguments describe. */
function Edits({ args }: { readonly args: JsonValue }) {
  if (!isObject(args)) return null
  const edits = [args, ...asList(args['edits']).filter(isObject)].flatMap((each) => {
    const { old_string: before, new_string: after } = each
    if (typeof before !== 'string' || typeof after !== 'string') return []
    if (before.length + after.length > DIFF_CHARS) return []
    return [{ path: asString(each['path']), before, after }]
  })
  if (edits.length === 0) return null
  return (
    <PanelSection name="Changes">
      {edits.map(({ path, before, after }, i) => (
        <div key={i}>
          {path === '' ? null : <Text mono text={path} />}
          <Diff before={before} after={after} />
        </div>
      ))}
    </PanelSection>
  )
}

function Decisions({ events }: { readonly events: readonly Event[] }) {
  const said = events.filter(
    (event): event is EventOf<'user.tool_confirmation'> => event.type === 'user.tool_confirmation',
  )
  const answers = events.filter(
    (event): event is EventOf<'user.custom_tool_result'> => event.type === 'user.custom_tool_result',
  )
  if (said.length + answers.length === 0) return null
  return (
    <PanelSection name={said.length > 0 ? 'Approval' : 'Answer'}>
      {said.map(({ seq, allow, by, role, why, at }) => (
        <FactRows
          key={seq}
          rows={[
            [allow ? 'Allowed by' : 'Denied by', <Text key="b" text={role === undefined ? by : `${by} as ${role}`} />],
            ['When', <MomentTime key="w" at={at} />],
            ['Why', why === undefined ? null : <Text key="y" text={why} />],
          ]}
        />
      ))}
      {answers.map(({ seq, by, at, ok }) => (
        <FactRows
          key={seq}
          rows={[
            [ok ? 'Answered by' : 'Failed by', <Text key="b" text={by ?? 'a program'} />],
            ['When', <MomentTime key="w" at={at} />],
          ]}
        />
      ))}
    </PanelSection>
  )
}
