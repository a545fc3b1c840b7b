// Plugins: tools, instructions, hooks and consumers of the log that belong together, and the connection they share. Checked when the
// harness is made, and bound into what the harness has itself: nothing else knows of plugins.
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../ports/system.ts'
import { callable, filled, listOf, needed, optionsOf, text } from '../options.ts'
import { closeMade } from '../effects/close-made.ts'
import type { Watcher } from '../engine/wiring.ts'
import type { Consumer, ConsumerHost, NamedConsumer } from '../riders/hooks/consumers.ts'
import type { Hook } from '../riders/hooks/hooks.ts'
import { ToolFailure } from '../tools/core/output.ts'
import { type Tool, toolCheck, type ToolSource } from '../tools/core/tool.ts'

export type Plugin = {
  readonly name: string
  readonly tools?: readonly (Tool | ToolSource)[]
  /** Joins the instructions of the harness, after its own. */
  readonly instructions?: string
  /** Asked after those of the harness. */
  readonly hooks?: readonly Hook[]
  readonly consumers?: readonly Consumer[]
  /**
   * Called once, before the first use of a tool, a hook or a consumer of it. One that failed is called again for the next use. What it
   * returns is closed with the harness, if it has `close` or `Symbol.asyncDispose`.
   */
  readonly connect?: () => unknown
}

const checkPlugin = optionsOf<Plugin>('a plugin', {
  name: needed(filled, 'Give it one, for messages about it.'),
  tools: listOf(toolCheck),
  instructions: text,
  // Each is checked with those of the harness.
  hooks: listOf(() => null),
  consumers: listOf(callable),
  connect: callable,
})

type Given = {
  readonly tools?: readonly (Tool | ToolSource)[]
  readonly instructions?: string
  readonly hooks?: readonly Hook[]
}

export type Bound = {
  /** What the harness has, with what its plugins bring. */
  readonly given: Required<Given>
  readonly consumers: readonly NamedConsumer[]
  readonly close: (clock: Clock) => Promise<void>
}

export function bindPlugins(plugins: readonly Plugin[], { tools = [], instructions = '', hooks = [] }: Given): Bound {
  for (const [i, plugin] of plugins.entries()) {
    checkPlugin(plugin, `plugins[${i}]`)
    if (plugins.findIndex(({ name }) => name === plugin.name) < i)
      throw new Fault('invalid_config', `Two plugins are named "${plugin.name}". Use each of them once.`)
  }
  checkTools(plugins, tools)
  const all = plugins.map((plugin) => ({ plugin, connection: plugin.connect ? new Connection(plugin) : null }))
  const said = [instructions, ...plugins.map((plugin) => plugin.instructions ?? '')]
  return {
    given: {
      tools: [...tools, ...all.flatMap(({ plugin, connection }) => toolsOf(plugin, connection))],
      instructions: said.filter((part) => part.trim() !== '').join('\n\n'),
      hooks: [...hooks, ...all.flatMap(({ plugin, connection }) => hooksOf(plugin, connection))],
    },
    consumers: all.flatMap(({ plugin, connection }) => consumersOf(plugin, connection)),
    close: async (clock) => {
      // A later plugin may use an earlier one.
      for (const { connection } of all.toReversed()) await connection?.close(clock)
    },
  }
}

/** Of names that are known now. Tools of sources are known when a run begins, and left out then. */
function checkTools(plugins: readonly Plugin[], own: Plugin['tools'] = []): void {
  const owners = new Map(own.map(({ name }) => [name, 'the harness']))
  for (const plugin of plugins) {
    const whose = `the plugin "${plugin.name}"`
    for (const tool of plugin.tools ?? []) {
      const other = owners.get(tool.name)
      if (other !== undefined && !('type' in tool))
        throw new Fault(
          'invalid_config',
          `Two tools are named "${tool.name}": one of ${other}, one of ${whose}. Rename one of them.`,
        )
      owners.set(tool.name, whose)
    }
  }
}

class Connection {
  readonly #plugin: Plugin
  #made: Promise<unknown> | null = null

  constructor(plugin: Plugin) {
    this.#plugin = plugin
  }

  async ready(): Promise<void> {
    const { name, connect } = this.#plugin
    this.#made ??= (async () => connect?.())()
    const made = this.#made
    try {
      await made
    } catch (error) {
      if (this.#made === made) this.#made = null
      const why = error instanceof Error ? error.message || error.name : String(error)
      throw new ToolFailure('Unavailable', `The plugin "${name}" could not connect: ${why}`)
    }
  }

  async close(clock: Clock): Promise<void> {
    const made = await this.#made?.catch(() => null)
    await closeMade(made, `The plugin "${this.#plugin.name}"`, clock)
  }
}

function toolsOf({ tools = [] }: Plugin, connection: Connection | null): readonly (Tool | ToolSource)[] {
  return connection === null ? tools : tools.map((tool) => connectedTool(tool, connection))
}

function connectedTool(tool: Tool | ToolSource, connection: Connection): Tool | ToolSource {
  const connected =
    <Args extends readonly unknown[], T>(act: (...args: Args) => T | Promise<T>) =>
    async (...args: Args): Promise<T> => {
      await connection.ready()
      return act(...args)
    }
  if ('type' in tool) {
    const { type, name } = tool
    const warnings = tool.warnings && { warnings: () => tool.warnings?.() ?? [] }
    const tools = connected((...asked: Parameters<ToolSource['tools']>) => tool.tools(...asked))
    return { type, name, tools, close: () => tool.close(), ...warnings }
  }
  const { execute, reconcile, undo } = tool
  return {
    ...tool,
    execute: connected(execute),
    reconcile: reconcile && connected(reconcile),
    undo: undo && connected(undo),
  }
}

function hooksOf({ hooks = [] }: Plugin, connection: Connection | null): readonly Hook[] {
  if (connection === null) return hooks
  return hooks.map((hook) => {
    // A value that is not a hook is refused with the hooks of the harness.
    if (typeof hook?.run !== 'function') return hook
    const run = async (event: never): Promise<unknown> => {
      await connection.ready()
      return hook.run(event)
    }
    return { ...hook, run } as Hook
  })
}

function consumersOf({ name, consumers = [] }: Plugin, connection: Connection | null): readonly NamedConsumer[] {
  return consumers.map((consume) => ({
    plugin: name,
    consume: async (event, at) => {
      await connection?.ready()
      return consume(event, at)
    },
  }))
}

/** The observer of a harness, and beside it the consumers. Their code is loaded if there are any. */
export function watcherOf(
  observer: Watcher | null,
  consumers: readonly NamedConsumer[],
  host: ConsumerHost,
): Watcher | null {
  if (consumers.length === 0) return observer
  const loading = import('../riders/hooks/consumers.ts').then(({ Consumers }) => new Consumers(consumers, host))
  return {
    committed(session, agent, run, events) {
      observer?.committed(session, agent, run, events)
      void loading.then((loaded) => loaded.committed(session, agent, events))
    },
    rested: (session, waiting) => observer?.rested(session, waiting),
    told: async (session) => observer?.told(session),
    async close() {
      await observer?.close()
      await (await loading).close()
    },
  }
}
