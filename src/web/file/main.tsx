// A session as one file, for a pull request or a report: its page with the log inside, read-only and without a server.
import { QueryClientProvider } from '@tanstack/react-query'
import { createRoot } from 'react-dom/client'
import { Route, Router, Switch } from 'wouter'
import { memoryLocation } from 'wouter/memory-location'
import type { SessionFile } from '../../server/wire-file.ts'
import { countNoun } from '../../view/shown-text.ts'
import { answerFrom } from '../data/api.ts'
import { queries } from '../data/queries.ts'
import { Empty, NothingHere } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { OneSessionPage } from '../pages/one-session-page.tsx'
import { decodeSessionId, keepPercent } from '../shell/session-address.ts'
import { applySettings, changeSettings, useSettings } from '../shell/browser-settings.ts'
import { Toasts } from '../shell/toasts.tsx'
import { createFileFetch } from './file-answers.ts'
import '../style/all.css'
import '../style/file.css'

// A file cannot change its address, so the location is kept in memory.
const { hook, searchHook } = memoryLocation()
const useAddress = keepPercent(hook)

function FilePage({ file }: { readonly file: SessionFile }) {
  const { events = [] } = file.sessions[file.session] ?? {}
  return (
    <QueryClientProvider client={queries}>
      <Router hook={useAddress} searchHook={searchHook}>
        <div className="file">
          <header className="file-head">
            <strong>Terret</strong>
            <span className="dim">
              A copy of {countNoun(events.length, 'event')}, made {new Date(file.made).toLocaleString('en')} by version{' '}
              <Text text={file.by} />. It does not change.
            </span>
            <span className="spread" />
            <ThemeSelect />
          </header>
          <main id="content" tabIndex={-1}>
            {file.left.length === 0 ? null : (
              <details className="file-left">
                <summary>{countNoun(file.left.length, 'thing')} left out</summary>
                <ul>
                  {file.left.map((each) => (
                    <li key={each}>
                      <Text text={each} />
                    </li>
                  ))}
                </ul>
              </details>
            )}
            <Switch>
              <Route path="/">
                <OneSessionPage id={file.session} />
              </Route>
              <Route path="/s/:id">{({ id }) => <OneSessionPage id={decodeSessionId(id)} key={id} />}</Route>
              <Route>
                <NothingHere message="This page is a file of one session: the rest is not in it." />
              </Route>
            </Switch>
          </main>
          <Toasts />
        </div>
      </Router>
    </QueryClientProvider>
  )
}

const THEMES = ['auto', 'light', 'dark'] as const

function ThemeSelect() {
  const { theme } = useSettings()
  return (
    <select
      className="field"
      aria-label="Theme"
      value={theme}
      onChange={({ target }) => changeSettings({ theme: THEMES.find((each) => each === target.value) ?? 'auto' })}
    >
      {THEMES.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  )
}

/** Null if the file was cut or changed. */
function parseSessionFile(text: string): SessionFile | null {
  try {
    const file = JSON.parse(text) as SessionFile
    return file.format === 'terret.page' && file.version === 1 ? file : null
  } catch {
    return null
  }
}

applySettings()
const place = document.getElementById('page')
const file = parseSessionFile(document.getElementById('session')?.textContent ?? '')
if (file) {
  answerFrom(createFileFetch(file))
  document.title = file.sessions[file.session]?.card.title ?? file.session
}
if (place)
  createRoot(place).render(
    file ? (
      <FilePage file={file} />
    ) : (
      <Empty title="This file is not whole">Export the session again, or ask for the file again.</Empty>
    ),
  )
