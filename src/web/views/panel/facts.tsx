// What the panel says of a request to the model, and of the session as it was after the shown event.
import { next, type Session } from '../../../kernel/index.ts'
import { cardOf } from '../../../view/card.ts'
import { counted } from '../../../view/text.ts'
import type { TurnRow } from '../../../view/timeline.ts'
import { stateOf } from '../../../view/tree.ts'
import { usdOf } from '../../../view/usd.ts'
import { Button } from '../../parts/button.tsx'
import { Money, Took } from '../../parts/figures.tsx'
import { Status } from '../../parts/status.tsx'
import { Text } from '../../parts/text.tsx'
import { Clock, Facts, Section } from './part.tsx'

const count = (value: number | undefined): string | null => (value === undefined ? null : value.toLocaleString('en'))

export function TurnFacts({ row, onChoose }: { readonly row: TurnRow; readonly onChoose: (to: string) => void }) {
  const { usage, cost, at, endedAt, route, missed, cached, calls, verdict } = row
  return (
    <>
      <Section name="Tokens">
        <Facts
          rows={[
            ['Input', count(usage?.inputTokens)],
            ['from the cache', cached ? 'all: the reply itself was kept' : count(usage?.cachedTokens)],
            ['into the cache', count(usage?.cacheWriteTokens)],
            ['Output', count(usage?.outputTokens)],
            ['thinking', count(usage?.reasoningTokens)],
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
      </Section>
      <Section name="Times">
        <Facts
          rows={[
            ['Asked', <Clock key="a" at={at} />],
            ['Replied', endedAt === null ? null : <Clock key="r" at={endedAt} />],
            ['Took', endedAt === null ? null : <Took ms={endedAt - at} />],
            ['Meant', verdict === null ? null : verdict.replaceAll('_', ' ')],
          ]}
        />
      </Section>
      {calls.length === 0 ? null : (
        <Section name={counted(calls.length, 'call')}>
          <div className="panel-row">
            {calls.slice(0, 50).map((call) => (
              <Button key={call} size="small" onPress={() => onChoose(call)}>
                {call}
              </Button>
            ))}
          </div>
        </Section>
      )}
    </>
  )
}

/** By the same fold that the server decides with. */
export function StateFacts({ session, state }: { readonly session: string; readonly state: Session }) {
  const card = cardOf(session, state, next(state, { now: state.at, epoch: state.epoch }))
  const open = state.run?.turn?.open ?? []
  return (
    <Section name={`The session after event ${state.seq.toLocaleString('en')}`}>
      <Facts
        rows={[
          ['Status', <Status key="s" of={stateOf(card)} />],
          ['Spent', <Money key="m" usd={usdOf(state.cost)} />],
          [
            'Run',
            state.run === null
              ? 'none is open'
              : `open since event ${state.run.seq}, ${counted(state.run.requests, 'request')}`,
          ],
          [
            'Open calls',
            open.length === 0 ? null : (
              <Text key="o" text={open.map(({ key, proposal }) => `${proposal.tool} ${key}`).join(', ')} />
            ),
          ],
          ['Messages not read', state.inputs.length === 0 ? null : String(state.inputs.length)],
          ['Looks again', state.wakes.length === 0 ? null : counted(state.wakes.length, 'time')],
        ]}
      />
    </Section>
  )
}
