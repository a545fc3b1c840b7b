// Effects in flight: this file starts effects, aborts them, and puts their landings in one queue. It decides nothing.
// F1: a flight that was started lands exactly once: by itself, or by force when its grace is over. One that is left for
// the next worker to repeat lands only if it ended all the same.
// F2: an aborted flight is still awaited, until its grace is over.
import { setMaxListeners } from 'node:events'
import type { StopReason } from '../../kernel/limits.ts'
import { hasIntent } from '../../kernel/landing.ts'
import type { Decision, Effect } from '../../kernel/next.ts'
import type { AbortReason, FailEffect, FlightContext, Landing, LandingQueue, PerformEffect } from '../state/effect.ts'

/** The landing to write when an effect did not land in time, or was stopped before it started. */
export type AbandonEffect = (effect: Effect, reason: AbortReason, started: boolean) => Landing

export type FlightOptions = {
  readonly perform: PerformEffect
  readonly fail: FailEffect
  readonly abandon: AbandonEffect
  readonly deadlineOf: (effect: Effect, now: number) => number
  readonly graceMs: number
  /** Whether the lease is certainly ours now. */
  readonly held: () => boolean
  /** Receives an effect that landed after its attempt was over. Its events can no longer be written as its result. */
  readonly late: (effect: Effect, landing: Landing) => void
}

/**
 * Every call of a reply may listen to the signal of its request. That is no leak of listeners, so Node must not warn
 * about it.
 */
function newAbortController(): AbortController {
  const controller = new AbortController()
  setMaxListeners(0, controller.signal)
  return controller
}

export class Flight implements FlightContext {
  readonly effect: Effect
  landing: Landing | null = null
  reason: AbortReason | null = null
  /** When the flight is aborted; after an abort, when it is given up. */
  dueAt: number
  /** Its worker stops: if the abort ends it, its intent stays open, and the next worker repeats it. */
  isLeft = false
  readonly #held: () => boolean
  #controller: AbortController | null = null

  constructor(effect: Effect, dueAt: number, held: () => boolean) {
    this.effect = effect
    this.dueAt = dueAt
    this.#held = held
  }

  clear(): boolean {
    return this.reason === null && this.#held()
  }

  get signal(): AbortSignal {
    this.#controller ??= newAbortController()
    if (this.reason !== null && !this.#controller.signal.aborted) this.#controller.abort(new Error(this.reason))
    return this.#controller.signal
  }

  abort(reason: AbortReason, graceAt: number): void {
    if (this.reason !== null) return
    this.reason = reason
    this.dueAt = graceAt
    this.#controller?.abort(new Error(reason))
  }
}

/** How soon to check again whether the lease is still held. */
const IN_DOUBT_MS = 250

export class Flights implements LandingQueue {
  readonly #options: FlightOptions
  readonly #ring: () => void
  readonly #open = new Map<string, Flight>()
  /** Flights that have landed, in that order. They are kept until `dropWritten`. */
  readonly landed: Flight[] = []

  constructor(options: FlightOptions, ring: () => void) {
    this.#options = options
    this.#ring = ring
  }

  get size(): number {
    return this.#open.size
  }

  /** Starts effects that are wanted and not in flight; aborts flights that are not wanted. */
  reconcile(decision: Extract<Decision, { type: 'perform' }>, now: number, held: boolean): void {
    const { effects, stop, reason } = decision
    for (let i = 0; i < stop.length; i++) this.#stop(stop[i] as Effect, reason ?? 'interrupted', now)
    if (this.#open.size > 0) this.#dropUnwanted(effects, now)
    for (let i = 0; i < effects.length; i++) {
      const effect = effects[i] as Effect
      // While the lease is in doubt, an effect without an intent would land at once with nothing, again and again.
      if (!this.#open.has(effect.key) && (held || hasIntent(effect))) this.#start(effect, now)
    }
  }

  /** After a commit was refused as over budget: whether any landing could be replaced by a cheaper one. */
  async recountLandings(): Promise<boolean> {
    let any = false
    for (const flight of this.landed) {
      const less = (await flight.landing?.recount?.()) ?? null
      if (less !== null) flight.landing = less
      any ||= less !== null
    }
    return any
  }

  dropWritten(count: number): void {
    for (let i = 0; i < count; i++) this.#open.delete(this.landed[i]?.effect.key ?? '')
    if (count === this.landed.length) this.landed.length = 0
    else this.landed.splice(0, count)
  }

  /** Aborts flights that are late, and gives up those that ignored their abort. Returns when to look again. */
  tick(now: number, held: boolean): number {
    let next = held ? Number.POSITIVE_INFINITY : now + IN_DOUBT_MS
    for (const flight of this.#open.values()) {
      if (flight.landing) continue
      if (now >= flight.dueAt) {
        if (flight.reason === null) flight.abort('timeout', now + this.#options.graceMs)
        else this.#land(flight, this.#options.abandon(flight.effect, flight.reason, true))
      }
      if (!flight.landing) next = Math.min(next, flight.dueAt)
    }
    return next
  }

  /** Aborts every flight and awaits it. Those that `leaves` names are left for the next worker. */
  abortAll(reason: AbortReason, now: number, leaves: (effect: Effect) => boolean): void {
    const graceAt = now + this.#options.graceMs
    for (const flight of this.#open.values()) {
      if (!hasIntent(flight.effect)) this.#drop(flight, graceAt)
      else if (!flight.landing) {
        flight.isLeft ||= flight.reason === null && leaves(flight.effect)
        flight.abort(reason, graceAt)
      }
    }
  }

  /** The attempt is over: aborts every flight and awaits none. */
  abandonAll(reason: AbortReason): void {
    for (const flight of this.#open.values()) flight.abort(reason, 0)
    this.#open.clear()
    this.landed.length = 0
  }

  #start(effect: Effect, now: number): void {
    const flight = new Flight(effect, this.#options.deadlineOf(effect, now), this.#options.held)
    this.#open.set(effect.key, flight)
    this.#options.perform(effect, flight).then(
      (landing) => this.#land(flight, landing),
      (error: unknown) => this.#land(flight, this.#options.fail(effect, error)),
    )
  }

  #stop(effect: Effect, reason: StopReason, now: number): void {
    const flight = this.#open.get(effect.key)
    // A call that must not be interrupted halfway is awaited until its own deadline.
    if (flight && effect.type === 'run' && effect.call.proposal.blocks && reason !== 'limit') return
    if (flight) return flight.abort(reason, now + this.#options.graceMs)
    // The intent is on disk but its effect never started. The landing says so, truthfully, for every class of effect.
    const never = new Flight(effect, now, this.#options.held)
    this.#open.set(effect.key, never)
    this.#land(never, this.#options.abandon(effect, reason, false))
  }

  #dropUnwanted(wanted: readonly Effect[], now: number): void {
    for (const [key, flight] of this.#open) {
      if (!hasIntent(flight.effect) && !wanted.some((effect) => effect.key === key)) this.#drop(flight, now)
    }
  }

  /** An effect without an intent on disk is aborted and forgotten when it is no longer wanted. */
  #drop(flight: Flight, now: number): void {
    flight.abort('unwanted', now)
    this.#open.delete(flight.effect.key)
  }

  #land(flight: Flight, landing: Landing): void {
    // A late landing after a forced one, or of a forgotten flight, changes nothing.
    if (flight.landing || this.#open.get(flight.effect.key) !== flight) {
      if (flight.reason === 'lost') this.#options.late(flight.effect, landing)
      return
    }
    if (flight.isLeft && isAborted(landing)) this.#open.delete(flight.effect.key)
    else {
      flight.landing = landing
      this.landed.push(flight)
    }
    this.#ring()
  }
}

function isAborted({ events: [event] }: Landing): boolean {
  return event?.type === 'agent.tool_result' && event.status === 'aborted'
}
