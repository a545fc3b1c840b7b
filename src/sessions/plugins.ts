// Plugins: tools, instructions, hooks and consumers of settled runs that belong together, and their connection. They
// are checked when the harness is made and merged into its own parts: no other code knows of plugins.
import { Fault } from '../kernel/failure.ts'
import type { Clock } from '../ports/system.ts'
import { functionCheck, nonEmptyCheck, listCheck, requiredCheck, optionsChecker, textCheck } from '../options.ts'
import { closeHostResource } from '../runtime/turn/close-made.ts'
import { type Consumer, consumerCheck } from '../runtime/hooks/consumers.ts'
import type { Hook } from '../runtime/state/hook-events.ts'
import { ToolFailure } from '../tools/core/tool-output.ts'
import { type Tool, toolCheck, type ToolSource } from '../tools/core/tool.ts'
import { thrownText } from '../view/shown-text.ts'

/** Tools, instructions, hooks and consumers that belong together, for the option `plugins`. */
export type Plugin = {
  /** A name of its own in its harness, for messages about it. */
  readonly name: string
  /** Tools of the harness, beside its own. */
  readonly tools?: readonly (Tool | ToolSource)[]
  /** Appended to the instructions of the harness. */
  readonly instructions?: string
  /** These run after the hooks of the harness. */
  readonly hooks?: readonly Hook[]
  /** Told of every settled run of a root session, at least once. */
  readonly consumers?: readonly Consumer[]
  /**
   * Called once, before the first use of one of its tools, hooks or consumers. If it fails, it is called again for the
   * next use. Its value is closed with the harness, if it has `close` or `Symbol.asyncDispose`.
   */
  readonly connect?: () => unknown
}

const checkPlugin = optionsChecker<Plugin>('a plugin', {
  name: requiredCheck(nonEmptyCheck, 'Give it one, for messages about it.'),
  tools: listCheck(toolCheck),
  instructions: textCheck,
  // Hooks are checked together with those of the harness.
  hooks: listCheck(() => null),
  consumers: listCheck(consumerCheck),
  connect: functionCheck,
})

type HarnessParts = {
  readonly tools?: readonly (Tool | ToolSource)[]
  readonly instructions?: string
  readonly hooks?: readonly Hook[]
}

export type BoundPlugins = {
  /** The parts of the harness, including those of its plugins. */
  readonly given: Required<HarnessParts>
  readonly consumers: readonly Consumer[]
  readonly close: (clock: Clock) => Promise<void>
}

export function bindPlugins(
  plugins: readonly Plugin[],
  { tools = [], instructions = '', hooks = [] }: HarnessParts,
): BoundPlugins {
  for (const [i, plugin] of plugins.entries()) {
    checkPlugin(plugin, `plugins[${i}]`)
    if (plugins.findIndex(({ name }) => name === plugin.name) < i)
      throw new Fault('invalid_config', `Two plugins are named "${plugin.name}". Use each of them once.`)
  }
  checkTools(plugins, tools)
  const all = plugins.map((plugin) => ({ plugin, connection: plugin.connect ? new PluginConnection(plugin) : null }))
  const said = [instructions, ...plugins.map((plugin) => plugin.instructions ?? '')]
  return {
    given: {
      tools: [...tools, ...all.flatMap(({ plugin, connection }) => pluginTools(plugin, connection))],
      instructions: said.filter((part) => part.trim() !== '').join('\n\n'),
      hooks: [...hooks, ...all.flatMap(({ plugin, connection }) => pluginHooks(plugin, connection))],
    },
    consumers: all.flatMap(({ plugin, connection }) => pluginConsumers(plugin, connection)),
    close: async (clock) => {
      // A later plugin may use an earlier one.
      for (const { connection } of all.toReversed()) await connection?.close(clock)
    },
  }
}

/**
 * Compares the names that are known now. Tools of sources become known when a run begins, and duplicates are left out
 * then.
 */
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

class PluginConnection {
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
      throw new ToolFailure('Unavailable', `The plugin "${name}" could not connect: ${thrownText(error)}`)
    }
  }

  async close(clock: Clock): Promise<void> {
    const made = await this.#made?.catch(() => null)
    await closeHostResource(made, `The plugin "${this.#plugin.name}"`, clock)
  }
}

function pluginTools({ tools = [] }: Plugin, connection: PluginConnection | null): readonly (Tool | ToolSource)[] {
  return connection === null ? tools : tools.map((tool) => connectTool(tool, connection))
}

function connectTool(tool: Tool | ToolSource, connection: PluginConnection): Tool | ToolSource {
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

function pluginHooks({ hooks = [] }: Plugin, connection: PluginConnection | null): readonly Hook[] {
  if (connection === null) return hooks
  return hooks.map((hook) => {
    // A value that is not a hook is refused together with the hooks of the harness.
    if (typeof hook?.run !== 'function') return hook
    const run = async (event: never): Promise<unknown> => {
      await connection.ready()
      return hook.run(event)
    }
    return { ...hook, run } as Hook
  })
}

function pluginConsumers({ consumers = [] }: Plugin, connection: PluginConnection | null): readonly Consumer[] {
  if (connection === null) return consumers
  return consumers.map((consumer) => ({
    ...consumer,
    run: async (...args) => {
      await connection.ready()
      return consumer.run(...args)
    },
  }))
}
