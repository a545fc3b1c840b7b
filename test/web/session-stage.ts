// Sessions of a real server in a real browser: the built pages, opened at an address. No expectations here.
import type { Page } from 'playwright-core'
import { type SessionServer, sessionServer } from './session-server.ts'
import { DIST, type Look, type Looked, looking } from './stage.ts'

export type Stage = SessionServer & {
  readonly url: string
  look(path: string, look?: Partial<Look> & { readonly token?: string }): Promise<Looked>
  page(path: string): Promise<Page>
}

export async function sessionStage(options: Parameters<typeof sessionServer>[0] = {}): Promise<Stage> {
  const one = await sessionServer({ ...options, serve: { pages: DIST } })
  const { url } = one.server
  const look: Stage['look'] = async (
    path,
    { width = 1280, dark = false, height = 860, token = one.tokens.own } = {},
  ) => {
    const looked = await looking({ width, dark, height })
    await looked.page.goto(`${url}${path}#token=${token}`)
    return looked
  }
  const page = async (path: string): Promise<Page> => (await look(path)).page
  return { ...one, url, look, page }
}
