// Every part of the inspector on one page, for tests and for those who build pages. It is in no package.
import { QueryClientProvider } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { createRoot } from 'react-dom/client'
import { setServerNow, serverNow } from '../../../src/web/data/server-clock.ts'
import { ApiError } from '../../../src/web/data/api.ts'
import { queries } from '../../../src/web/data/queries.ts'
import { findToken, setToken } from '../../../src/web/data/tab-token.ts'
import { SessionListRow } from '../../../src/web/pages/sessions/session-row.tsx'
import { PendingDetail } from '../../../src/web/pages/inbox/pending-detail.tsx'
import { Button } from '../../../src/web/parts/button.tsx'
import { Chart } from '../../../src/web/parts/chart.tsx'
import { Code } from '../../../src/web/parts/code-block.tsx'
import { Diff } from '../../../src/web/parts/diff-view.tsx'
import { Ago, Money, moneyText, TimeTaken, TokenCount } from '../../../src/web/parts/figures.tsx'
import { GraphDiagram } from '../../../src/web/parts/graph-diagram.tsx'
import { JsonTree } from '../../../src/web/parts/json-tree.tsx'
import { List } from '../../../src/web/parts/virtual-list.tsx'
import { Markdown } from '../../../src/web/parts/markdown-view.tsx'
import { DamageNotice, Empty, Loading, Notice, Offline, ErrorPanel } from '../../../src/web/parts/page-states.tsx'
import { StatusLabel } from '../../../src/web/parts/status-label.tsx'
import { Text } from '../../../src/web/parts/exact-text.tsx'
import { applySettings } from '../../../src/web/shell/browser-settings.ts'
import { PageHead, Shell } from '../../../src/web/shell/page-shell.tsx'
import { showToast } from '../../../src/web/shell/toasts.tsx'
import { TimelineLine } from '../../../src/web/views/timeline-view.tsx'
import * as sample from './samples.ts'
import { Views } from './views.tsx'
import '../../../src/web/style/all.css'
import '../../../src/web/style/session.css'
import './gallery.css'

applySettings()
// A view is looked at with a real server behind it.
const isViews = /^\/(?:views\/|compare)/.test(location.pathname)
if (!isViews) setToken('gallery-token-0123456789')
setServerNow({ now: sample.NOW })
for (const [key, data] of sample.answers) queries.setQueryData(key, data)
queries.setDefaultOptions({ queries: { staleTime: Number.POSITIVE_INFINITY, retry: false } })
Object.assign(window, { sayToast: showToast, serverNow })

function Part({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <section className="panel" data-part={name}>
      <h2>{name}</h2>
      {children}
    </section>
  )
}

function Texts() {
  return (
    <>
      <PendingDetail
        pending={sample.pending}
        ended={null}
        note={null}
        takesFocus={false}
        hasNext={false}
        onNext={() => {}}
        onDone={() => {}}
        onRefused={() => {}}
      />
      <Part name="Text">
        <Text as="block" mono text={sample.hostile} />
        <Text as="block" mono text={sample.long} />
      </Part>
      <Part name="Markdown">
        <Markdown text={sample.markdown} />
      </Part>
      <Part name="Code">
        <Code text={sample.code} language="ts" />
      </Part>
      <Part name="Diff">
        <Diff before={sample.before} after={sample.after} />
      </Part>
      <Part name="Json">
        <JsonTree value={sample.json} open={2} />
      </Part>
    </>
  )
}

function Drawings() {
  return (
    <>
      <Part name="Graph">
        <GraphDiagram drawing={sample.drawing} standings={sample.standings} />
      </Part>
      <Part name="Chart">
        <Chart label="Dollars an hour" times={sample.times} values={sample.values} unit={moneyText} />
      </Part>
      <Part name="States">
        <DamageNotice seq={812} reason="its checksum is wrong" />
        <Notice>The provider does not answer; the next try is in 12 s.</Notice>
        <Loading rows={4} />
        <Empty title="No sessions yet" command={'terret run "What changed here this week?"'}>
          A session appears here as soon as it begins.
        </Empty>
        <ErrorPanel
          error={new ApiError('disk_full', 507, 'The disk is full. Free some space, then try again.')}
          onRetry={() => {}}
        />
        <Offline onRetry={() => {}} />
      </Part>
    </>
  )
}

function Gallery() {
  return (
    <div className="page">
      <PageHead title="Parts" about="Every part of the inspector">
        <input className="field" type="search" aria-label="Search" placeholder="Search  /" />
        <Button kind="primary" onPress={() => showToast('Sent')}>
          New
        </Button>
      </PageHead>
      <div className="stack scrolls">
        <Part name="Status">
          <div className="panel-row">
            {sample.states.map((state) => (
              <StatusLabel key={state} of={state} />
            ))}
          </div>
        </Part>
        <Part name="Figures">
          <div className="panel-row">
            <Money usd={0.0038} /> <Money usd={1_234.5} /> <Money usd={0} /> <TokenCount count={1_320} />{' '}
            <TimeTaken ms={2_100} />
            <TimeTaken ms={5} /> <Ago at={sample.NOW - 180_000} /> <Ago at={sample.NOW + 86_400_000} />
          </div>
        </Part>
        <Part name="Buttons">
          <div className="panel-row">
            <Button kind="primary" onPress={() => {}}>
              Allow once
            </Button>
            <Button onPress={() => {}}>Review</Button>
            <Button kind="danger" onPress={() => {}}>
              Deny
            </Button>
            <Button kind="quiet" onPress={() => {}}>
              Quiet
            </Button>
            <Button disabled onPress={() => {}}>
              Not now
            </Button>
          </div>
        </Part>
        <Part name="Rows">
          <div className="rows-box">
            <List
              label="Sessions"
              items={sample.cards}
              keyOf={({ session }) => session}
              chosen={sample.cards[1]?.session ?? null}
              row={(card) => <SessionListRow card={card} />}
            />
          </div>
        </Part>
        <Part name="Timeline">
          {sample.rows.map((row) => (
            <TimelineLine key={`${row.type} ${row.seq} ${'call' in row ? row.call : ''}`} row={row} />
          ))}
        </Part>
        <Texts />
        <Drawings />
      </div>
    </div>
  )
}

const place = document.getElementById('page')
if (isViews) queries.clear()
if (isViews) await findToken()
if (place)
  createRoot(place).render(
    <QueryClientProvider client={queries}>
      <Shell>{isViews ? <Views /> : <Gallery />}</Shell>
    </QueryClientProvider>,
  )
