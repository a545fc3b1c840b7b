// The states of a page without content: empty, loading, error, offline, without a token, missing, damaged.
import { CircleSlash, CloudOff, Hourglass, KeyRound, ScanSearch, TriangleAlert } from './icons.ts'
import { type ReactNode, useEffect, useState } from 'react'
import { ApiError } from '../data/api.ts'
import { setToken } from '../data/tab-token.ts'
import { Button, CopyButton } from './button.tsx'
import { Text } from './exact-text.tsx'

type StatePanelProps = {
  readonly icon: ReactNode
  readonly title: string
  readonly children?: ReactNode
  readonly tone?: 'bad' | 'dim'
}

function StatePanel({ icon, title, children, tone = 'dim' }: StatePanelProps) {
  return (
    <div className={`face ${tone}`}>
      <div className="face-icon">{icon}</div>
      <h2>{title}</h2>
      {children}
    </div>
  )
}

/** `command`: the command to run next. */
export function Empty({
  title,
  children,
  command,
}: {
  readonly title: string
  readonly children?: ReactNode
  readonly command?: string
}) {
  return (
    <StatePanel icon={<ScanSearch size={26} aria-hidden />} title={title}>
      {children === undefined ? null : <p>{children}</p>}
      {command === undefined ? null : <CommandText text={command} />}
    </StatePanel>
  )
}

/** A command with a copy button. @public */
export function CommandText({ text }: { readonly text: string }) {
  return (
    <div className="command">
      <code>
        <span className="command-mark" aria-hidden>
          $
        </span>{' '}
        {text}
      </code>
      <CopyButton text={text} label="Copy command" />
    </div>
  )
}

const LATE_MS = 200

/** Placeholder rows, shown only if loading takes longer than a moment. */
export function Loading({ rows = 6, what = 'Loading' }: { readonly rows?: number; readonly what?: string }) {
  const [late, setLate] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), LATE_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className="skeleton" role="status" aria-label={what}>
      {late ? Array.from({ length: rows }, (_, i) => <div className={`bone bone-${i % 4}`} key={i} />) : null}
    </div>
  )
}

/** Shows an error, with a way to retry. */
export function ErrorPanel({ error, onRetry }: { readonly error: unknown; readonly onRetry?: () => void }) {
  const { code, status, message } =
    error instanceof ApiError ? error : { code: 'internal', status: 0, message: String(error) }
  if (code === 'network') return <Offline {...(onRetry ? { onRetry } : {})} />
  if (status === 404 || status === 410) return <NothingHere message={message} />
  return (
    <StatePanel icon={<TriangleAlert size={26} aria-hidden />} title="This could not be read" tone="bad">
      <p role="alert">
        <Text text={message} />
      </p>
      <p className="face-code">
        <code>{code}</code>
      </p>
      {onRetry ? <Button onPress={onRetry}>Try again</Button> : null}
    </StatePanel>
  )
}

export function Offline({ onRetry }: { readonly onRetry?: () => void }) {
  return (
    <StatePanel icon={<CloudOff size={26} aria-hidden />} title="The server does not answer" tone="bad">
      <p>What was read stays here. The page tries again by itself.</p>
      <CommandText text="terret serve" />
      {onRetry ? <Button onPress={onRetry}>Try now</Button> : null}
    </StatePanel>
  )
}

export function NothingHere({
  message = 'It was removed, or this token does not reach it.',
}: {
  readonly message?: string
}) {
  return (
    <StatePanel icon={<CircleSlash size={26} aria-hidden />} title="There is nothing here">
      <p>
        <Text text={message} />
      </p>
    </StatePanel>
  )
}

/** All events before `seq` can be read. */
export function DamageNotice({ seq, reason }: { readonly seq: number; readonly reason: string }) {
  return (
    <div className="notice bad" role="note">
      <TriangleAlert size={16} aria-hidden />
      <span>
        The log is damaged. It is readable to event {seq - 1}: <Text text={reason} />
      </span>
    </div>
  )
}

/** A banner across the page for a temporary condition. */
export function Notice({
  children,
  tone = 'warn',
}: {
  readonly children: ReactNode
  readonly tone?: 'warn' | 'bad' | 'accent'
}) {
  return (
    <div className={`notice ${tone}`} role="status">
      <Hourglass size={16} aria-hidden />
      <span>{children}</span>
    </div>
  )
}

/** The page shown while there is no token. */
export function AskToken() {
  const [text, setText] = useState('')
  return (
    <main className="ask-token">
      <StatePanel icon={<KeyRound size={26} aria-hidden />} title="Which token is yours?">
        <p>
          Open the address that <code>terret serve</code> printed: it has the token in it. Or paste the token here. It
          is kept in this tab alone.
        </p>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            setToken(text.trim())
          }}
        >
          <label>
            Token
            <input
              className="field mono"
              type="password"
              autoComplete="off"
              spellCheck={false}
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          </label>
          <Button kind="primary" type="submit" disabled={text.trim().length < 16} onPress={() => {}}>
            Open
          </Button>
        </form>
      </StatePanel>
    </main>
  )
}
