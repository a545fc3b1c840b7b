// The built inspector on a real server, in a real browser: people with their tabs. No expectations here.
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import type { HarnessOptions, Script } from '../../src/index.ts'
import type { OpenedAnswer, WirePending } from '../../src/server/wire.ts'
import { type Ask, PEOPLE, type Served, served } from '../server/served.ts'
import { repository } from '../tidy/source.ts'
import { browser } from '../ui/browser.ts'
import { until } from '../until.ts'

export type Inspector = Served & {
  /** A tab of somebody, in a browser of their own unless one is given. */
  tab(path: string, look?: Tab): Promise<Seen>
  open(input: unknown, ask?: Ask): Promise<string>
  /** What waits, once something does. */
  waiting(session: string): Promise<WirePending>
}
export type Tab = {
  readonly token?: string | undefined
  readonly context?: BrowserContext
  readonly width?: number
  readonly dark?: boolean
  readonly prepare?: (page: Page) => Promise<void>
}
/** `wrong` has every error, refused load, dialog and request to elsewhere. */
export type Seen = { readonly page: Page; readonly wrong: string[] }

type More = Omit<NonNullable<Parameters<typeof served>[1]>, 'harness'>

export async function inspector(
  script: Script,
  harness: Omit<HarnessOptions, 'model' | 'store'> = {},
  more: More = {},
): Promise<Inspector> {
  const one = await served(script, {
    ...more,
    harness,
    serve: { pages: join(repository, 'dist/web'), ...more.serve },
  })
  const shared = browser()
  return {
    ...one,
    tab: async (path, look = {}) => tabOf(await shared, one, path, look),
    open: async (input, ask = {}) =>
      (await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input }, ...ask })).session,
    waiting: (session) =>
      until(async () => {
        const { pending } = await one.json<{ pending: readonly WirePending[] }>('GET', `/v1/sessions/${session}`)
        const [first] = pending
        if (!first) throw new Error('nothing waits')
        return first
      }),
  }
}

async function tabOf(shared: Browser, one: Served, path: string, look: Tab): Promise<Seen> {
  const { width = 1280, dark = false, token = one.tokens.own } = look
  const context =
    look.context ??
    (await shared.newContext({
      viewport: { width, height: width > 600 ? 860 : 780 },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: 'reduce',
    }))
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const wrong: string[] = []
  page.on('console', (message) => {
    // A refusal of the server is an answer that pages show.
    if (message.type() === 'error' && !/status of (4|5)\d\d/.test(message.text())) wrong.push(message.text())
  })
  page.on('pageerror', (error) => wrong.push(String(error)))
  page.on('dialog', (dialog) => {
    wrong.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(one.server.url) && !request.url().startsWith('data:image/svg'))
      wrong.push(`asked ${request.url()}`)
  })
  await look.prepare?.(page)
  const [address = '', fragment] = path.split('#')
  await page.goto(`${one.server.url}${address}#${fragment ?? `token=${token}`}`)
  await page.waitForSelector('.page, .face')
  return { page, wrong }
}

/** A token for each of vera (viewer), otto (operator), ana and bob (approvers). */
export function peopleOf(one: Served): Readonly<Record<string, string>> {
  return Object.fromEntries(PEOPLE.map((person) => [person.name, one.token(person)]))
}

/** Whether the element with the focus is drawn as one: it has an outline, or an underline or ring in its place. */
export const FOCUS_SEEN = `(() => {
  const at = document.activeElement
  if (at === null || at === document.body) return 'nothing has the focus'
  const drawn = (style) => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0
  const styles = [getComputedStyle(at), getComputedStyle(at, '::after'), getComputedStyle(at.parentElement)]
  if (styles.some(drawn) || /underline/.test(styles[0].textDecorationLine)) return 'seen'
  return at.outerHTML.slice(0, 120)
})()`
