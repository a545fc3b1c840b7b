// The token of this page. It comes in the address after the `#`, which no server or log sees, and is kept for this tab
// only. A new tab asks the other tabs of the same address. It is never put into a cookie, an address or storage that
// outlives the tab.

const KEY = 'terret.token'
const CHANNEL = 'terret.token'
const ASK_MS = 300
/** Base64url or hexadecimal: other text must not get into a header. */
const FORM = /^[\w.~-]{16,512}$/

let token: string | null = null
const listeners = new Set<() => void>()

export function currentToken(): string | null {
  return token
}

/** Null if it was refused or forgotten. */
export function setToken(next: string | null): void {
  token = next !== null && FORM.test(next) ? next : null
  if (token === null) sessionStorage.removeItem(KEY)
  else sessionStorage.setItem(KEY, token)
  for (const listener of listeners) listener()
}

export function onToken(listener: () => void): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Looks for a token in the address, in this tab and in other tabs. Null: a person must enter one. */
export async function findToken(): Promise<string | null> {
  const given = new URLSearchParams(location.hash.slice(1)).get('token')
  if (given !== null) {
    // Remove the token from the address bar and the browser's history.
    history.replaceState(history.state, '', location.pathname + location.search)
    setToken(given)
  } else setToken(sessionStorage.getItem(KEY))
  const channel = new BroadcastChannel(CHANNEL)
  if (token === null) setToken(await askOtherTabs(channel))
  channel.addEventListener('message', ({ data }: MessageEvent<TokenMessage>) => {
    if (data.type === 'ask' && token !== null) channel.postMessage({ type: 'token', token } satisfies TokenMessage)
    else if (data.type === 'token' && token === null) setToken(data.token)
  })
  return token
}

type TokenMessage = { readonly type: 'ask' } | { readonly type: 'token'; readonly token: string }

function askOtherTabs(channel: BroadcastChannel): Promise<string | null> {
  return new Promise((resolve) => {
    const done = (found: string | null): void => {
      clearTimeout(late)
      channel.removeEventListener('message', hear)
      resolve(found)
    }
    const hear = ({ data }: MessageEvent<TokenMessage>): void => {
      if (data.type === 'token') done(data.token)
    }
    const late = setTimeout(() => done(null), ASK_MS)
    channel.addEventListener('message', hear)
    channel.postMessage({ type: 'ask' } satisfies TokenMessage)
  })
}
