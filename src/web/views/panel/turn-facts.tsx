// The facts of a model request, and of the session after the shown event.
import { next, type Session } from '../../../kernel/index.ts'
import { cardOf } from '../../../view/card.ts'
import { countNoun } from '../../../view/shown-text.ts'
import type { TurnRow } from '../../../view/timeline.ts'
import { stateOf } from '../../../view/tree-rows.ts'
import { usdOf } from '../../../view/usd.ts'
import { Button } from '../../parts/button.tsx'
import { Money, TimeTaken } from '../../parts/figures.tsx'
import { StatusLabel } from '../../parts/status-label.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { MomentTime, FactRows, PanelSection } from './panel-section.tsx'

const optionalCount = (value: number | undefined): string | null =>
  value === undefined ? null : value.toLocaleString('en')

export function TurnFacts({ row, onChoose }: { readonly row: TurnRow; readonly onChoose: (to: string) => void }) {
  const { usage, cost, at, endedAt, route, missed, cached, calls, verdict } = row
  return (
    <>
      <PanelSection name="Tokens">
        <FactRows
          rows={[
            ['Input', optionalCount(usage?.inputTokens)],
            ['from the cache', cached ? 'all: the reply itself was kept' : optionalCount(usage?.cachedTokens)],
            ['into the cache', optionalCount(usage?.cacheWriteTokens)],
            ['Output', optionalCount(usage?.outputTokens)],
            ['thinking', optionalCount(usage?.reasoningTokens)],
            ['Cost', cost > 0 ? <Money usd={usdOf(cost)} /> : null],
            [
              'Cache missed',
              missed ? <Text text={`${missed.why}, ${missed.tokens.toLocaleString('en')} tokens`} /> : null,
            ],
            ['which cost', missed ? <Money usd={usdOf(missed.cost)} /> : null],
            ['Model', route === null ? null : <Text text={route} />],
          ]}
        />
        {usage === null ? <p className="dim">The provider has not said yet.</p> : null}
      </PanelSection>
      <PanelSection name="Times">
        <FactRows
          rows={[
            ['Asked', <MomentTime key="a" at={at} />],
            ['Replied', endedAt === null ? null : <MomentTime key="r" at={endedAt} />],
            ['Took', endedAt === null ? null : <TimeTaken ms={endedAt - at} />],
            ['Meant', verdict === null ? null : verdict.replaceAll('_', ' ')],
          ]}
        />
      </PanelSection>
      {calls.length === 0 ? null : (
        <PanelSection name={countNoun(calls.length, 'call')}>
          <div className="panel-row">
            {calls.slice(0, 50).map((call) => (
              <Button key={call} size="small" onPress={() => onChoose(call)}>
                {call}
              </Button>
            ))}
          </div>
        </PanelSection>
      )}
    </>
  )
}

/** Computed with the server's own fold. */
export function StateFacts({ session, state }: { readonly session: string; readonly state: Session }) {
  const card = cardOf(session, state, next(state, { now: state.at, epoch: state.epoch }))
  const open = state.run?.turn?.open ?? []
  return (
    <PanelSection name={`The session after event ${state.seq.toLocaleString('en')}`}>
      <FactRows
        rows={[
          ['Status', <StatusLabel key="s" of={stateOf(card)} />],
          ['Spent', <Money key="m" usd={usdOf(state.cost)} />],
          [
            'Run',
            state.run === null
              ? 'none is open'
              : `open since event ${state.run.seq}, ${countNoun(state.run.requests, 'request')}`,
          ],
          [
            'Open calls',
            open.length === 0 ? null : (
              <Text key="o" text={open.map(({ key, proposal }) => `${proposal.tool} ${key}`).join(', ')} />
            ),
          ],
          ['Messages not read', state.inputs.length === 0 ? null : String(state.inputs.length)],
          ['Looks again', state.wakes.length === 0 ? null : countNoun(state.wakes.length, 'time')],
        ]}
      />
    </PanelSection>
  )
}
