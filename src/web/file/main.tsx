// A session as one file, for a pull request or a report: the page of the session, with its log inside, read-only and without a server.
import { QueryClientProvider } from '@tanstack/react-query'
import { createRoot } from 'react-dom/client'
import { Route, Router, Switch } from 'wouter'
import { memoryLocation } from 'wouter/memory-location'
import type { SessionFile } from '../../server/wire-file.ts'
import { counted } from '../../view/text.ts'
import { answerFrom } from '../data/api.ts'
import { queries } from '../data/query.ts'
import { Empty, Gone } from '../parts/states.tsx'
import { Text } from '../parts/text.tsx'
import { SessionPage } from '../pages/session.tsx'
import { decodeId, keepPercent } from '../shell/session-address.ts'
import { applySettings, change, useSettings } from '../shell/settings.ts'
import { Toasts } from '../shell/toasts.tsx'
import { answersOf } from './answers.ts'
import '../style/all.css'
import '../style/file.css'

// The address of a file cannot change as that of a page does.
const { hook, searchHook } = memoryLocation()
const useAddress = keepPercent(hook)

function Frame({ file }: { readonly file: SessionFile }) {
  const { events = [] } = file.sessions[file.session] ?? {}
  return (
    <QueryClientProvider client={queries}>
      <Router hook={useAddress} searchHook={searchHook}>
        <div className="file">
          <header className="file-head">
            <strong>Terret</strong>
            <span className="dim">
              A copy of {counted(events.length, 'event')}, made {new Date(file.made).toLocaleString('en')} by version{' '}
              <Text text={file.by} />. It does not change.
            </span>
            <span className="spread" />
            <Theme />
          </header>
          <main id="content" tabIndex={-1}>
            {file.left.length === 0 ? null : (
              <details className="file-left">
                <summary>{counted(file.left.length, 'thing')} left out</summary>
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
                <SessionPage id={file.session} />
              </Route>
              <Route path="/s/:id">{({ id }) => <SessionPage id={decodeId(id)} key={id} />}</Route>
              <Route>
                <Gone message="This page is a file of one session: the rest is not in it." />
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

function Theme() {
  const { theme } = useSettings()
  return (
    <select
      className="field"
      aria-label="Theme"
      value={theme}
      onChange={({ target }) => change({ theme: THEMES.find((each) => each === target.value) ?? 'auto' })}
    >
      {THEMES.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  )
}

/** Null: the file was cut or changed. */
function fileIn(text: string): SessionFile | null {
  try {
    const file = JSON.parse(text) as SessionFile
    return file.format === 'terret.page' && file.version === 1 ? file : null
  } catch {
    return null
  }
}

applySettings()
const place = document.getElementById('page')
const file = fileIn(document.getElementById('session')?.textContent ?? '')
if (file) {
  answerFrom(answersOf(file))
  document.title = file.sessions[file.session]?.card.title ?? file.session
}
if (place)
  createRoot(place).render(
    file ? (
      <Frame file={file} />
    ) : (
      <Empty title="This file is not whole">Export the session again, or ask for the file again.</Empty>
    ),
  )
