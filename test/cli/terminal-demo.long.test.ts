// The first minute at a real terminal: three kills, an approval from here and from elsewhere, and the account at the end.
import { chmodSync, cpSync, existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { demoLog, lives, nodesIn, watchProcesses } from './demo-watch.ts'
import { stageOfEach } from './scripted.ts'
import type { PendingAnswer, SessionAnswer } from '../../src/server/wire.ts'
import { until } from '../until.ts'
import { MAIN } from './stage.ts'
import { expectScreen, noTmux, openScreen, type Screen } from './terminal.ts'

const { stage } = stageOfEach()
const ASKED = /Allow it\? .*›$/
const ASKED_NARROW = /Allow it\? y yes · n no · l later · d all\n? of it ›$/
const ENDED = /\nexit \d+\n\$$/
/** All is told, and the inspector is served. */
const SERVED = /\nInspector {2}this run, until Ctrl-C:\n {2}http:\/\/\S+$/

/** Ctrl-C at the inspector: the code is that of the run. */
async function leave(screen: Screen): Promise<string> {
  screen.keys('C-c')
  return screen.until(ENDED)
}

/** A request of the page whose address is shown. */
function pageOf(text: string) {
  const [, url = '', token = ''] = /(http:\/\/127\.0\.0\.1:\d+)\/#token=(\S{43})/.exec(text) ?? []
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${url}/v1/${path}`, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return (await answer.json()) as T
  }
  return { url, ask }
}

function begun(env: Readonly<Record<string, string>> = {}, columns = 80, rows = 24): Screen {
  const screen = openScreen(stage, env)
  screen.resize(columns, rows)
  screen.enter('clear; terret demo; echo exit $?')
  return screen
}

const idIn = (text: string): string => text.match(/(?<=approve )[0-9a-f]{8}/g)?.at(-1) ?? ''
const stable = (text: string): string =>
  text
    .replaceAll(/127\.0\.0\.1:\d+\/#token=\S{43}/g, '127.0.0.1:4747/#token=TOKEN')
    .replaceAll(/\b(process|kill -9) \d+/g, '$1 1234')
    .replace(/none left: [\d, ]+/, 'none left: 1234')
    .replace(/allowed by \S+/, 'allowed by you')
const report = (id: string): string => join(stage.folder, 'terret-demo/reports', `${id}.md`)
const ALL = ['plan 1 1', 'search 2 1', 'extract 1 1', 'draft 2 1', 'review 1 1', 'propose 1 1', 'finalize 2 1']

describe.skipIf(noTmux)('terret demo at a terminal', { timeout: 240_000 }, () => {
  it('B-START-9: kills three workers, one between the write and its commit; the report is written once, and 80 columns and 30 rows hold all of it', async () => {
    const watch = watchProcesses(stage)
    const screen = begun(watch.env)
    const asked = await screen.until(ASKED)
    expectScreen(stable(asked), 'demo-asked', stage)
    const id = idIn(asked)
    expect(existsSync(report(id))).toBe(false)
    screen.enter('y')
    const shown = await screen.until(SERVED)
    expectScreen(stable(shown), 'demo-ended', stage)
    expect(shown.split('\n').length).toBeLessThanOrEqual(30)
    expect(await leave(screen)).toMatch(/\nAgain {6}terret serve --data terret-demo\/data\nexit 0\n\$$/)
    const workers = watch.workers()
    expect(workers.map(({ killed }) => killed)).toEqual([true, true, false, true, false])
    expect(workers.filter(({ pid }) => lives(pid))).toEqual([])
    const events = await demoLog(stage, id)
    expect(nodesIn(events)).toEqual(ALL)
    // The worker after the kill found the bytes of the one before, and wrote nothing.
    const last = events.findLast((event) => event.type === 'agent.tool_result')
    expect(last).toMatchObject({ content: expect.stringContaining('"changed":false') as string })
    expect(readFileSync(report(id), 'utf8')).toMatch(/^# What does a sick-room need/)
  })

  it('B-START-10: another process decides, and the demo goes on; one that also resumes does the rest itself', async () => {
    const screen = begun()
    const id = idIn(await screen.until(ASKED))
    const decide = (...more: readonly string[]) =>
      stage.apart('approve', idIn(screen.text()), '--by', 'ana', '--data', 'terret-demo/data', ...more)
    expect((await decide()).code).toBe(0)
    const shown = await screen.until(SERVED)
    await leave(screen)
    expect(shown).toMatch(/✓ allowed by ana\n✗ finalize {2}kill -9/)
    expect(shown).toContain('Kills      3 real SIGKILL')
    expect(nodesIn(await demoLog(stage, id))).toEqual(ALL)
    screen.enter('clear; terret demo; echo exit $?')
    await screen.until(new RegExp(`approve (?!${id})[0-9a-f]{8}.*\\n.*›$`))
    expect((await decide('--resume')).code).toBe(0)
    const again = await screen.until(new RegExp(`another process[\\s\\S]*${SERVED.source}`))
    await leave(screen)
    expect(again).toMatch(/✓ finalize .* another process\n/)
    expect(again).toContain('Kills      2 real SIGKILL: search; draft\n')
    expect(again).toContain('5847, written once; the file has the SHA-256 that was approved\n')
  })

  it('B-START-11, B-START-12: later it ends with the commands that go on; on a narrow terminal without a cursor every line is shown once', async () => {
    const screen = begun({ TERM: 'dumb', NO_COLOR: '1' }, 40, 20)
    const asked = await screen.until(ASKED_NARROW)
    expect(asked).toMatch(/\n✗ search kill -9 \d+ while it ran: no\n┆ result in the log\n✓ search/)
    expect(asked.match(/^✓ plan/gm)).toHaveLength(1)
    expect(asked).not.toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/u)
    expect(screen.text(true)).not.toContain('\u001b[')
    screen.enter('what')
    await screen.until(/Say one of: y, n, l, d\.[\s\S]*Allow it/)
    screen.enter('d')
    await screen.until(/sha256:[\s\S]*## Sources[\s\S]*Allow it/)
    screen.keys('C-c')
    const shown = await screen.until(ENDED)
    expect(shown).toMatch(/It waits, and no process runs\.[\s\S]*Allow it: {3}terret approve[\s\S]*exit 0\n\$$/)
    const id = idIn(shown)
    expect((await stage.apart('approve', id, '--resume', '--data', 'terret-demo/data')).code).toBe(0)
    expect(existsSync(report(id))).toBe(true)
  })

  it('B-START-5, B-START-11, B-START-12: resized and refused, each line is there once and nothing is written; Ctrl-C leaves no process', async () => {
    const watch = watchProcesses(stage)
    const screen = begun(watch.env, 100, 30)
    await screen.until('✗ search')
    screen.resize(60, 20)
    await screen.until('✓ extract')
    screen.resize(90, 24)
    const asked = await screen.until(ASKED)
    for (const line of ['✓ plan', '✗ search', '✓ search', '✓ extract', '✗ draft', '✓ draft', '✓ propose'])
      expect(asked.split(line)).toHaveLength(2)
    const id = idIn(asked)
    screen.enter('n not this one')
    await screen.until(SERVED)
    const shown = await leave(screen)
    expect(shown).toMatch(/✗ refused by \S+: not this one\n✗ finalize {2}denied/)
    expect(shown).toMatch(/Kills {6}2 real SIGKILL: search; draft\n[\s\S]*Bytes {6}0 written[\s\S]*exit 0\n\$$/)
    expect(existsSync(report(id))).toBe(false)
    screen.enter('clear; terret demo; echo exit $?')
    await screen.until(/^✓ plan[\s\S]*runs search$/m)
    screen.keys('C-c')
    const left = await screen.until(/Stopped; no process is left[\s\S]*exit 5\n\$$/)
    expect(watch.workers().filter(({ pid }) => lives(pid))).toEqual([])
    const [, command = ''] = /terret (resume [0-9a-f]{8} .*)$/m.exec(left) ?? []
    expect((await stage.apart(...command.split(' '))).code).toBe(3)
  })

  it('B-START-14: the approval is given in the inspector, which has the run until Ctrl-C; then no process is left and its port is free', async () => {
    const watch = watchProcesses(stage)
    const screen = begun(watch.env)
    const asked = await screen.until(ASKED)
    const { url, ask } = pageOf(asked)
    const page = await fetch(`${url}/`)
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<!doctype html>')])
    const [call] = (await ask<PendingAnswer>('GET', 'pending')).pending
    const { sessionId = '', callId, digest } = call ?? {}
    expect(sessionId.slice(0, 8)).toBe(idIn(asked))
    expect((await ask<{ readonly drives: boolean }>('GET', 'health')).drives).toBe(false)
    await ask('POST', `sessions/${sessionId}/decisions`, { callId, digest, allow: true })
    const shown = await screen.until(SERVED)
    expect(shown).toMatch(/✓ allowed by \S+\n✗ finalize {2}kill -9/)
    expect((await ask<SessionAnswer>('GET', `sessions/${sessionId}`)).card.outcome).toBe('completed')
    expect((await ask<{ readonly drives: boolean }>('GET', 'health')).drives).toBe(true)
    expect(await leave(screen)).toMatch(/\nAgain {6}terret serve --data terret-demo\/data\nexit 0\n\$$/)
    expect(watch.workers().filter(({ pid }) => lives(pid))).toEqual([])
    await expect(fetch(`${url}/`)).rejects.toThrow()
  })

  it('B-START-15: a port in use is no trouble, and only --open opens a browser, by a file that nobody else may read', async () => {
    const opener = stage.write(
      'open/xdg-open',
      `#!/bin/sh\nstat -c %a "$1" > "$HOME/opened"\ncat "$1" >> "$HOME/opened"\n`,
    )
    chmodSync(opener, 0o755)
    const opened = join(dirname(stage.folder), 'opened')
    const started = (flags: string): Screen => {
      const screen = openScreen(stage)
      screen.enter(`export PATH=${dirname(opener)}:$PATH; clear; terret demo${flags}; echo exit $?`)
      return screen
    }
    const first = started('')
    const one = pageOf(await first.until(ASKED))
    expect(existsSync(opened)).toBe(false)
    const second = started(' --open')
    const asked = await second.until(ASKED)
    const two = pageOf(asked)
    expect(two.url).not.toBe(one.url)
    expect(asked).toContain(`${two.url}/#token=`)
    await until(() =>
      expect(readFileSync(opened, 'utf8')).toMatch(new RegExp(`^600\\n<!doctype html>.*url=${two.url}/#token=`)),
    )
    for (const screen of [first, second]) {
      screen.enter('l')
      expect(await screen.until(ENDED)).toContain('It waits, and no process runs.')
    }
    expect(existsSync(join(stage.folder, 'terret-demo/data/open.html'))).toBe(false)
  })

  it('B-START-16: a build without pages says so, asks as before and ends after its account', async () => {
    const root = dirname(stage.folder)
    const built = resolve(MAIN, '../..')
    cpSync(built, join(root, 'package/dist'), { recursive: true })
    rmSync(join(root, 'package/dist/web'), { recursive: true })
    for (const name of ['node_modules', 'examples', 'package.json'])
      symlinkSync(resolve(built, '..', name), join(root, 'package', name))
    const screen = openScreen(stage)
    screen.enter(`clear; node ${join(root, 'package/dist/cli/main.js')} demo; echo exit $?`)
    const asked = await screen.until(ASKED)
    expect(asked).toMatch(/There is no inspector in this build[\s\S]*Decide here, or in a second terminal:\n/)
    screen.enter('y')
    const shown = await screen.until(ENDED)
    expect(shown).toMatch(/Kills {6}3 real SIGKILL[\s\S]*exit 0\n\$$/)
    expect(shown).not.toContain('until Ctrl-C')
  })
})
