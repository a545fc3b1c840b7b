// One view of one session of a real server, at `/views/NAME?s=ID`, with all its events; the window to fork one, and the page to compare
// two. The page of a session has them beside each other.
import { useQuery } from '@tanstack/react-query'
import { type ComponentType, useMemo, useState } from 'react'
import { Route, Switch } from 'wouter'
import { EMPTY, open, take, type Session } from '../../../src/kernel/index.ts'
import { api } from '../../../src/web/data/api.ts'
import { readLogUpTo } from '../../../src/web/data/other-logs.ts'
import { ComparePage } from '../../../src/web/pages/compare-page.tsx'
import { ForkDialog } from '../../../src/web/parts/fork-dialog.tsx'
import { PageHead } from '../../../src/web/shell/page-shell.tsx'
import { ContextView } from '../../../src/web/views/context-view.tsx'
import { GraphView } from '../../../src/web/views/graph-view.tsx'
import type { ViewProps } from '../../../src/web/views/view-props.ts'
import { RawView } from '../../../src/web/views/raw-view.tsx'
import { WaterfallView } from '../../../src/web/views/waterfall-view.tsx'

const VIEWS: Readonly<Record<string, ComponentType<ViewProps>>> = {
  waterfall: WaterfallView,
  graph: GraphView,
  context: ContextView,
  raw: RawView,
}

export function Views() {
  return (
    <Switch>
      <Route path="/views/fork">
        <ForkDialog {...forked()} onClose={() => {}} />
      </Route>
      <Route path="/views/:name">
        <OneView />
      </Route>
      <Route path="/compare" component={ComparePage} />
      <Route path="/s/:id">{({ id }) => <p data-session={id}>Session {id}</p>}</Route>
    </Switch>
  )
}

function forked() {
  const params = new URLSearchParams(location.search)
  return { session: params.get('s') ?? '', at: params.has('at') ? Number(params.get('at')) : null }
}

function OneView() {
  const session = new URLSearchParams(location.search).get('s') ?? ''
  const from = Number(new URLSearchParams(location.search).get('from') ?? 0)
  const View = VIEWS[location.pathname.slice('/views/'.length)]
  const [chosen, setChosen] = useState<number | null>(null)
  const { data } = useQuery({
    queryKey: ['whole', session],
    queryFn: async () => {
      const { card, head } = await api.session(session)
      return { card, events: (await readLogUpTo(session, head, 100_000)).events }
    },
  })
  const state = useMemo((): Session | null => {
    if (!data) return null
    const folded = open(EMPTY)
    for (const event of data.events) take(folded, event)
    return folded
  }, [data])
  if (!data || !View) return null
  const events = data.events.filter(({ seq }) => seq > from)
  return (
    <div className="page">
      <PageHead title={data.card.title ?? session} about={`chosen: ${chosen ?? 'none'}`} />
      <View
        card={data.card}
        events={events}
        cut={from > 0}
        isNow={false}
        waiting={[]}
        state={state}
        chosen={chosen}
        onChoose={setChosen}
      />
    </div>
  )
}
