// `terret serve`: the sessions of this data folder over HTTP, and driven by this process, until it is stopped.
import type { Call } from '../args.ts'
import { endOf, EXIT, isReplaced, Refusal } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { print, printJson, warn, typed } from '../present/print.ts'
import { openPage } from '../serve/browser.ts'
import { type Listening, openServer, PORT } from '../serve/serving.ts'
import { inPlace } from '../state/place.ts'
import { otherServers } from '../state/served.ts'

/** Whatever is left to do then, the process ends: what was acknowledged is on disk. */
const STOP_MS = 10_000
const PORT_MAX = 65_535

export function serve(call: Call): Promise<number> {
  const listening = listensOn(call)
  return inPlace(async (place) => {
    const { home, at } = place
    const store = at?.shown ?? ''
    const others = otherServers(home)
    // From the start: who reads the address may stop it at once.
    const { stops, stop } = stopping()
    // What this process knows is not what the store has: only the next one can go on with it.
    let replaced = false
    const failed = (error: unknown): void => {
      if (replaced || !isReplaced(error)) return
      replaced = true
      warn(clean(endOf(error).text))
      stop()
    }
    const server = await openServer(place, call, listening, failed)
    const drives = !call.is('no-drive')
    if (drives) server.drive(call.count('width'))
    for (const { url, pid } of drives ? others : [])
      warn(`Another server drives the sessions of this data folder too: ${url} (process ${pid}).`)
    const { url, token, page } = server
    if (call.is('json')) printJson({ url, token, store })
    else
      print(
        `Serving ${url}`,
        `Open ${page}`,
        `Sessions are in ${clean(store)}`,
        drives
          ? 'Ctrl-C stops it; runs go on where they are driven next.'
          : `It drives nothing: \`${typed`worker`}\` does. Ctrl-C stops it.`,
      )
    const leave = call.is('open') ? await openPage(home, page) : (): void => {}
    if (leave === null) warn('No browser could be opened. Open the address yourself.')
    await stops
    leave?.()
    const late = setTimeout(() => {
      warn('Not everything came to rest in time. What was acknowledged is on disk.')
      process.exit(replaced ? EXIT.store : EXIT.ok)
    }, STOP_MS)
    await server.close().finally(() => clearTimeout(late))
    return replaced ? EXIT.store : EXIT.ok
  })
}

/** An address that other machines reach needs a list of its host names: a request with another name may be a DNS rebinding attack. */
function listensOn(call: Call): Listening {
  const address = call.text('host') ?? '127.0.0.1'
  const names = call.texts('name')
  const wrong = names.find((name) => !/^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::\d{1,5})?$/.test(name))
  if (wrong !== undefined)
    throw new Refusal(EXIT.usage, `--name "${wrong}" is no host in small letters, such as box.lan:4747.`)
  if (address !== '127.0.0.1' && address !== '::1' && names.length === 0)
    throw new Refusal(
      EXIT.usage,
      `--host ${address} can be reached from outside. Say by which names, as browsers will ask for them: --name box.lan`,
    )
  const port = call.count('port', 0) ?? PORT
  if (port > PORT_MAX) throw new Refusal(EXIT.usage, `--port must be at most ${PORT_MAX}, not ${port}. 0 takes any.`)
  return { port, address, names }
}

/** Resolves when somebody stops the process, or `stop` is called. */
function stopping(): { readonly stops: Promise<void>; readonly stop: () => void } {
  let stop = (): void => {}
  const stops = new Promise<void>((resolve) => {
    stop = () => {
      process.off('SIGINT', stop)
      process.off('SIGTERM', stop)
      resolve()
    }
    process.on('SIGINT', stop)
    process.on('SIGTERM', stop)
  })
  return { stops, stop }
}
