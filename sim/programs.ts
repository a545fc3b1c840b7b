// Another program on the same store: a worker of its own, and sessions that only that worker may drive. Only in some seeds.
import { Chance } from './scheduler.ts'

/** What the sessions of the simulated program say of themselves, as those of a harness without a name do. */
export const OWN = 'unnamed'
export const OTHER = 'other'
/** The worker of the other program, and its sessions. */
export const STRANGER = 'w7'
export const STRANGE = ['x0', 'x1'] as const
/** The agent of its sessions is one that the first program has, too: only the name of the program tells them apart. */
export const STRANGE_AGENT = 'clerk'
const SHARE = 0.2

/** Whether this seed has another program. Its own chance, so that the other seeds are as they were. */
export function hasOther(seed: number): boolean {
  return new Chance(seed ^ 0x0771).yes(SHARE)
}

export function programOf(worker: string): string {
  return worker.includes(`${STRANGER}.`) ? OTHER : OWN
}

/** What the ids begin with that a harness beside the worker of its process makes, also when it holds a lease. */
export function deskOf(process: string): string {
  return `${process}-desk`
}

/** A verb acts on a session as its owner, and drives nothing. */
export function isVerb(worker: string): boolean {
  return worker.startsWith('owner-')
}
