// The inspector's entry: finds the token, applies the settings and renders the pages.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { ErrorPanel } from './parts/page-states.tsx'
import { wasReloadedForStore } from './data/store-change.ts'
import { findToken } from './data/tab-token.ts'
import { applySettings } from './shell/browser-settings.ts'
import { showToast } from './shell/toasts.tsx'
import './style/all.css'

applySettings()
const place = document.getElementById('page')
await findToken()
if (wasReloadedForStore()) showToast('The server has another store now: everything was read anew.', 'bad')
if (place) {
  const root = createRoot(place, {
    // A page that fails to render shows the error.
    onUncaughtError: (error) => {
      reportError(error)
      root.render(
        <main className="ask-token">
          <ErrorPanel error={error} onRetry={() => location.reload()} />
        </main>,
      )
    },
  })
  root.render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
}
