// A server whose log is damaged or whose disk is full; the pages beside the routes; and the documents that are made of the table.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Fault } from '../../src/index.ts'
import { openApi } from '../../src/server/open-api.ts'
import { CSP } from '../../src/server/inspector-files.ts'
import { type EventsAnswer, type OpenedAnswer, ROUTES, type SessionAnswer } from '../../src/server/wire.ts'
import { driverOf, makeFile, open } from '../stores/folder.ts'
import type { Database } from '../../src/stores/sqlite/driver.ts'
import { until } from '../until.ts'
import { served } from './served.ts'

describe('a server', () => {
  it('B-SERVE-38: reads a damaged log up to its last good event and says so', async () => {
    const one = await served(['Done.'])
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: { input: 'Go.' } })
    await one.json('GET', `/v1/sessions/${session}/result?wait=20`)
    const database = new DatabaseSync(join(one.folder, 'terret.db'))
    database.exec('DROP TRIGGER events_keep; DROP TRIGGER events_stay')
    database.exec(`UPDATE events SET body = '{}' WHERE pos = (SELECT pos FROM events ORDER BY pos LIMIT 1 OFFSET 3)`)
    database.close()
    const page = await one.json<EventsAnswer>('GET', `/v1/sessions/${session}/events`)
    expect([page.events.map(({ seq }) => seq), page.damaged?.seq, page.after]).toEqual([[1, 2, 3], 4, null])
    const answer = await one.ask('GET', `/v1/sessions/${session}`)
    expect(answer.status).toBe(200)
    const sessions = await one.json<{ readonly sessions: readonly object[] }>('GET', '/v1/sessions')
    expect(sessions.sessions).toHaveLength(1)
  })

  it('B-SERVE-38: with a full disk refuses what must be written (507), goes on reading, and says so in its health (F57)', async () => {
    const opened: Database[] = []
    const driver = () => driverOf((db) => (opened.push(db), db))
    const store = open(makeFile(), { loadDriver: driver })
    const one = await served(['Done.'], { store, harness: { worker: { drives: false } } })
    const { session } = await one.json<OpenedAnswer>('POST', '/v1/sessions', { body: {} })
    const extend = store.extend.bind(store)
    store.extend = () => Promise.reject(new Fault('disk_full', 'The disk is full.'))
    for (const db of opened) db.exec('PRAGMA max_page_count = 1')
    const input = 'x'.repeat(500_000)
    const refused = await one.ask('POST', `/v1/sessions/${session}/messages`, { body: { input } })
    expect([refused.status, refused.headers['retry-after']]).toEqual([507, '5'])
    expect((await one.json<SessionAnswer>('GET', `/v1/sessions/${session}`)).card.session).toBe(session)
    expect(await one.json('GET', '/v1/health')).toMatchObject({ ok: false, trouble: 'The disk is full.' })
    for (const db of opened) db.exec('PRAGMA max_page_count = 1000000')
    store.extend = extend
    await until(async () => expect(await one.json('GET', '/v1/health')).toMatchObject({ ok: true, trouble: null }))
    expect((await one.ask('POST', `/v1/sessions/${session}/messages`, { body: { input } })).status).toBe(202)
  })

  it('B-SERVE-28: serves the files of its pages by exact name, under a policy that loads nothing from elsewhere, and never under /v1', async () => {
    const pages = mkdtempSync(join(tmpdir(), 'terret-pages-'))
    onTestFinished(() => rmSync(pages, { recursive: true, force: true }))
    mkdirSync(join(pages, 'assets'))
    writeFileSync(join(pages, 'index.html'), '<!doctype html>')
    writeFileSync(join(pages, 'assets', 'app-0a1b2c3d.js'), 'void 0')
    writeFileSync(join(pages, '.env'), 'SECRET=1')
    const one = await served([], { serve: { pages } })
    const get = (path: string, method = 'GET') => one.ask(method, path, { token: null })
    for (const path of ['/', '/s/abc', '/index.html']) {
      const { status, headers, text } = await get(path)
      expect([path, status, text]).toEqual([path, 200, '<!doctype html>'])
      expect(headers).toMatchObject({
        'content-security-policy': CSP,
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-cache',
      })
    }
    expect((await get('/assets/app-0a1b2c3d.js')).headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': expect.stringContaining('immutable') as unknown,
    })
    for (const path of ['/.env', '/assets/missing.js', '/assets/..%2f.env'])
      expect((await get(path)).status).not.toBe(200)
    expect((await get('/v1/nothing')).status).toBe(401)
    expect((await one.ask('GET', '/v1/nothing')).headers['content-type']).toContain('json')
    expect((await get('/', 'POST')).status).toBe(404)
    expect((await get('/', 'HEAD')).text).toBe('')
  })

  it('B-SERVE-39: has every route of its table in the guide and in its OpenAPI document, and no other', () => {
    const guide = readFileSync(new URL('../../docs/guide/server.md', import.meta.url), 'utf8')
    const rows = [
      ...guide.matchAll(/^\| `(GET|POST|DELETE) (\/(?:v1\/[^`]+|metrics))` \| (\w+) \| ([^|]*) \| (.+) \|$/gm),
    ]
    const said = rows.map(([, method, path, role, takes = '', says]) => {
      return { method, path, role, takes: takes.replace(/[` ]/g, ''), says }
    })
    const table = Object.values(ROUTES).map(({ method, path, role, query, body, says }) => {
      const names = [query, body].flatMap((schema) => Object.keys((schema?.['properties'] ?? {}) as object))
      return { method, path, role, takes: names.join(','), says }
    })
    expect(said).toEqual(table)
    const { paths } = openApi('1', '/') as { readonly paths: Readonly<Record<string, object>> }
    const documented = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    expect(new Set(documented)).toEqual(
      new Set(table.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)),
    )
  })
})
