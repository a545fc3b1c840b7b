// The pages and their addresses. A page that is not opened is not loaded.
import { QueryClientProvider } from '@tanstack/react-query'
import { Suspense } from 'react'
import { Route, Router, Switch } from 'wouter'
import { useBrowserLocation } from 'wouter/use-browser-location'
import { BASE } from './data/mount.ts'
import { queries, useToken } from './data/query.ts'
import { AskToken, Gone, Loading } from './parts/states.tsx'
import { SessionsPage } from './pages/sessions.tsx'
import { later } from './shell/later.ts'
import { decodeId, keepPercent } from './shell/session-address.ts'
import { PageHead, Shell } from './shell/shell.tsx'

const loadSmallPages = () => import('./pages/small-pages.ts')
const InboxPage = later(async () => (await loadSmallPages()).InboxPage)
const AgentsPage = later(async () => (await loadSmallPages()).AgentsPage)
const SchedulesPage = later(async () => (await loadSmallPages()).SchedulesPage)
const HealthPage = later(async () => (await loadSmallPages()).HealthPage)
const SettingsPage = later(async () => (await loadSmallPages()).SettingsPage)
const ComparePage = later(async () => (await import('./pages/compare.tsx')).ComparePage)
const SessionPage = later(async () => (await import('./pages/session.tsx')).SessionPage)

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
              <Route path="/health" component={HealthPage} />
              <Route path="/settings" component={SettingsPage} />
              <Route path="/compare" component={ComparePage} />
              <Route path="/s/:id">{({ id }) => <SessionPage id={decodeId(id)} key={id} />}</Route>
              <Route>
                <div className="page">
                  <PageHead title="Not found" />
                  <Gone message="No page has this address." />
                </div>
              </Route>
            </Switch>
          </Suspense>
        </Shell>
      </Router>
    </QueryClientProvider>
  )
}
