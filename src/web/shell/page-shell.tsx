// The shell around every page: the rail (a bottom bar on phones), the palette, keys, toasts, and the connection status.
// The tab's title counts what waits for people.
import { type ReactNode, Suspense, useEffect, useState } from 'react'
import { Link, useLocation } from 'wouter'
import { Search } from '../parts/icons.ts'
import { usePendingNews } from '../data/card-list.ts'
import { useLiveState, useMe, usePending } from '../data/queries.ts'
import { StatusLabel } from '../parts/status-label.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Loading, Notice } from '../parts/page-states.tsx'
import { Text } from '../parts/exact-text.tsx'
import { useWaitingNotice } from './waiting-notice.ts'
import { lazyComponent } from './lazy-component.ts'
import { PLACES } from './nav-places.ts'
import { Toasts } from './toasts.tsx'
import { useKeys } from './use-keys.ts'

const loadPalette = () => import('./palette.tsx')
const loadHelp = () => import('./key-help.tsx')
const loadNewSession = () => import('./new-session.tsx')
const Palette = lazyComponent(async () => (await loadPalette()).Palette)
const Help = lazyComponent(async () => (await loadHelp()).KeyHelp)
const NewSession = lazyComponent(async () => (await loadNewSession()).NewSession)

/** Loads the dialogs after the first rendering, so that they open at once. */
const AHEAD_MS = 300

function usePreloadedWindows(): void {
  useEffect(() => {
    const timer = setTimeout(
      () => void Promise.all([loadPalette(), loadHelp(), loadNewSession()]).catch(() => {}),
      AHEAD_MS,
    )
    return () => clearTimeout(timer)
  }, [])
}

/** A placeholder dialog while the code loads, so that typing does not reach the page. */
function OpeningDialog({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Opening" onClose={onClose}>
      <Loading rows={3} />
    </Dialog>
  )
}

export function Shell({ children }: { readonly children: ReactNode }) {
  const [window, setWindow] = useState<'palette' | 'help' | 'new' | null>(null)
  const [, go] = useLocation()
  const live = useLiveState()
  const waiting = usePending().data?.pending.length ?? 0
  useKeys({
    palette: () => setWindow((open) => (open === 'palette' ? null : 'palette')),
    help: () => setWindow('help'),
    new: () => setWindow('new'),
    ...Object.fromEntries(PLACES.map(({ path, command }) => [command, () => go(path)])),
  })
  usePendingNews()
  usePreloadedWindows()
  useWaitingNotice(waiting)
  const close = (): void => setWindow(null)
  return (
    <div className="shell">
      <a href="#content" className="skip">
        Skip to the page
      </a>
      <Rail waiting={waiting} onFind={() => setWindow('palette')} />
      <main id="content" tabIndex={-1}>
        {live === 'offline' ? <Notice tone="bad">The server does not answer. What was read stays here.</Notice> : null}
        {children}
      </main>
      <Toasts />
      <Suspense fallback={<OpeningDialog onClose={close} />}>
        {window === 'palette' ? <Palette onClose={close} /> : null}
        {window === 'help' ? <Help onClose={close} /> : null}
        {window === 'new' ? <NewSession onClose={close} /> : null}
      </Suspense>
    </div>
  )
}

function Rail({ waiting, onFind }: { readonly waiting: number; readonly onFind: () => void }) {
  const [path] = useLocation()
  const live = useLiveState()
  const me = useMe().data
  const isHere = (place: string): boolean =>
    place === '/' ? path === '/' || path.startsWith('/s/') : path.startsWith(place)
  return (
    <header className="rail">
      <div className="brand">
        <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden>
          <circle cx="16" cy="16" r="10" className="brand-ring" />
          <path d="M4 27 C 10 20, 22 12, 28 5" className="brand-rein" />
        </svg>
        <span>Terret</span>
      </div>
      <button type="button" className="find" onClick={onFind}>
        <Search size={15} aria-hidden />
        <span>Find</span>
        <kbd>Ctrl K</kbd>
      </button>
      <nav aria-label="Places">
        <ul>
          {PLACES.map(({ path: place, name, icon: Icon }) => (
            <li key={place}>
              <Link
                href={place}
                className={isHere(place) ? 'place here' : 'place'}
                aria-current={isHere(place) ? 'page' : undefined}
              >
                <Icon size={18} aria-hidden />
                <span className="place-name">{name}</span>
                {place === '/inbox' && waiting > 0 ? (
                  <span className="count" aria-label={`${waiting} waiting`}>
                    {waiting > 99 ? '99+' : waiting}
                  </span>
                ) : null}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <div className="rail-foot">
        {live === 'idle' ? null : <StatusLabel of={live} />}
        {me ? (
          <span className="rail-me">
            <Text text={me.name} /> · {me.role}
          </span>
        ) : null}
      </div>
    </header>
  )
}

/** The header of a page: title, summary and actions. */
export function PageHead({
  title,
  about,
  children,
}: {
  readonly title: string
  readonly about?: ReactNode
  readonly children?: ReactNode
}) {
  return (
    <header className="page-head">
      <div>
        <h1>{title}</h1>
        {about === undefined ? null : <p className="dim">{about}</p>}
      </div>
      <div className="page-acts">{children}</div>
    </header>
  )
}
