// The pages and their addresses. A page's code is loaded when it is first opened.
import { QueryClientProvider } from '@tanstack/react-query'
import { Suspense } from 'react'
import { Route, Router, Switch } from 'wouter'
import { useBrowserLocation } from 'wouter/use-browser-location'
import { BASE } from './data/mount.ts'
import { queries, useToken } from './data/queries.ts'
import { AskToken, NothingHere, Loading } from './parts/page-states.tsx'
import { SessionsPage } from './pages/sessions-page.tsx'
import { lazyComponent } from './shell/lazy-component.ts'
import { decodeSessionId, keepPercent } from './shell/session-address.ts'
import { PageHead, Shell } from './shell/page-shell.tsx'

const loadSmallPages = () => import('./pages/small-pages.ts')
const InboxPage = lazyComponent(async () => (await loadSmallPages()).InboxPage)
const AgentsPage = lazyComponent(async () => (await loadSmallPages()).AgentsPage)
const SchedulesPage = lazyComponent(async () => (await loadSmallPages()).SchedulesPage)
const TriggersPage = lazyComponent(async () => (await loadSmallPages()).TriggersPage)
const EvalsPage = lazyComponent(async () => (await loadSmallPages()).EvalsPage)
const HealthPage = lazyComponent(async () => (await loadSmallPages()).HealthPage)
const SettingsPage = lazyComponent(async () => (await loadSmallPages()).SettingsPage)
const ComparePage = lazyComponent(async () => (await import('./pages/compare-page.tsx')).ComparePage)
const SessionPage = lazyComponent(async () => (await import('./pages/one-session-page.tsx')).OneSessionPage)

const useAddress = keepPercent(useBrowserLocation)

export function App() {
  const token = useToken()
  if (token === null) return <AskToken />
  return (
    <QueryClientProvider client={queries}>
      <Router base={BASE} hook={useAddress}>
        <Shell>
          <Suspense fallback={<Loading />}>
            <Switch>
              <Route path="/" component={SessionsPage} />
              <Route path="/inbox" component={InboxPage} />
              <Route path="/agents" component={AgentsPage} />
              <Route path="/schedules" component={SchedulesPage} />
              <Route path="/triggers" component={TriggersPage} />
              <Route path="/evals" component={EvalsPage} />
              <Route path="/health" component={HealthPage} />
              <Route path="/settings" component={SettingsPage} />
              <Route path="/compare" component={ComparePage} />
              <Route path="/s/:id">{({ id }) => <SessionPage id={decodeSessionId(id)} key={id} />}</Route>
              <Route>
                <div className="page">
                  <PageHead title="Not found" />
                  <NothingHere message="No page has this address." />
                </div>
              </Route>
            </Switch>
          </Suspense>
        </Shell>
      </Router>
    </QueryClientProvider>
  )
}
