// A component whose code is loaded when it is first shown.
import { type ComponentType, lazy } from 'react'

export function lazyComponent<Props extends object>(load: () => Promise<ComponentType<Props>>) {
  return lazy(async () => ({ default: await load() }))
}
