// A tab of the inspector in a real browser: reloaded, read and weighed.
import type { Browser, CDPSession, Page } from 'playwright-core'
import type { ServerProcess } from './server.ts'

const SHOWN_MS = 30_000
const LOOK_MS = 500

export class Tab {
  readonly #page: Page
  readonly #protocol: CDPSession

  private constructor(page: Page, protocol: CDPSession) {
    this.#page = page
    this.#protocol = protocol
  }

  static async open(browser: Browser, server: ServerProcess, path: string): Promise<Tab> {
    const page = await (await browser.newContext()).newPage()
    await page.goto(`${server.url}${path}#token=${server.token}`)
    await page.locator('main').waitFor()
    return new Tab(page, await page.context().newCDPSession(page))
  }

  /** While the server is away a page cannot be loaded: then it is tried again. */
  async reload(): Promise<void> {
    for (;;) {
      try {
        await this.#page.reload({ waitUntil: 'domcontentloaded' })
        return
      } catch {
        await new Promise((next) => void setTimeout(next, LOOK_MS))
      }
    }
  }

  /** What is in use after a collection. */
  async heapMb(): Promise<number> {
    await this.#protocol.send('HeapProfiler.collectGarbage')
    const { usedSize } = await this.#protocol.send('Runtime.getHeapUsage')
    return usedSize / 1_048_576
  }

  /** What is wrong with the messages that it shows: they are numbered, and must be there once and in order. */
  async check(): Promise<readonly string[]> {
    const until = performance.now() + SHOWN_MS
    for (;;) {
      const text = await this.#page.locator('main').innerText()
      const notes = [...text.matchAll(/note-(\d+) /g)].map(([, n]) => Number(n))
      const [first = 0] = notes
      const isWhole = notes.length > 0 && notes.every((n, i) => n === first + i)
      if (isWhole) return []
      if (performance.now() > until) return [`the page shows the messages ${notes.join(', ') || '(none)'}`]
      await new Promise((next) => void setTimeout(next, LOOK_MS))
    }
  }
}
