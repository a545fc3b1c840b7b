// The inspector: finds its token, applies what the person chose, and draws the pages.
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './app.tsx'
import { Trouble } from './parts/states.tsx'
import { wasReadAnew } from './data/anew.ts'
import { findToken } from './data/token.ts'
import { applySettings } from './shell/settings.ts'
import { toast } from './shell/toasts.tsx'
import './style/all.css'

applySettings()
const place = document.getElementById('page')
await findToken()
if (wasReadAnew()) toast('The server has another store now: everything was read anew.', 'bad')
if (place) {
  const root = createRoot(place, {
    // A page that broke says so instead of showing nothing.
    onUncaughtError: (error) => {
      reportError(error)
      root.render(
        <main className="ask-token">
          <Trouble error={error} onRetry={() => location.reload()} />
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
