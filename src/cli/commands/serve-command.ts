// `terret serve`: serves the sessions of this data folder over HTTP and drives them in this process, until it is
// stopped.
import type { CommandArgs } from '../args.ts'
import { exitForError, EXIT, isStoreReplaced, CliError } from '../exit.ts'
import { clean } from '../../view/clean.ts'
import { print, printJson, warn, terretCommand } from '../present/print.ts'
import { openPage } from '../serve/browser.ts'
import { type ListenAddress, openServer, PORT } from '../serve/open-server.ts'
import { withStore } from '../state/command-context.ts'
import { otherServers } from '../state/running-servers.ts'

/** After this time the process ends even with work left: acknowledged input is on disk. */
const STOP_MS = 10_000
const PORT_MAX = 65_535

export function serveCommand(call: CommandArgs): Promise<number> {
  const listening = listenAddress(call)
  return withStore(async (place) => {
    const { home, at } = place
    const store = at?.shown ?? ''
    const others = otherServers(home)
    // Listens for signals from the start: a program that reads the address may stop the server at once.
    const { stops, stop } = stopSignal()
    // The store was replaced, so this process has the wrong data. Only a new process can go on.
    let replaced = false
    const failed = (error: unknown): void => {
      if (replaced || !isStoreReplaced(error)) return
      replaced = true
      warn(clean(exitForError(error).text))
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
          : `It drives nothing: \`${terretCommand`worker`}\` does. Ctrl-C stops it.`,
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
function listenAddress(call: CommandArgs): ListenAddress {
  const address = call.text('host') ?? '127.0.0.1'
  const names = call.texts('name')
  const wrong = names.find((name) => !/^(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:]+\])(?::\d{1,5})?$/.test(name))
  if (wrong !== undefined)
    throw new CliError(EXIT.usage, `--name "${wrong}" is no host in small letters, such as box.lan:4747.`)
  if (address !== '127.0.0.1' && address !== '::1' && names.length === 0)
    throw new CliError(
      EXIT.usage,
      `--host ${address} can be reached from outside. Say by which names, as browsers will ask for them: --name box.lan`,
    )
  const port = call.count('port', 0) ?? PORT
  if (port > PORT_MAX) throw new CliError(EXIT.usage, `--port must be at most ${PORT_MAX}, not ${port}. 0 takes any.`)
  return { port, address, names }
}

/** Resolves on SIGINT or SIGTERM, or when `stop` is called. */
function stopSignal(): { readonly stops: Promise<void>; readonly stop: () => void } {
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
