// The cached data of pages: sessions, pending calls, the token's owner. Live updates go into the same cache, so that a
// list and a detail always agree.
import { keepPreviousData, QueryClient, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'
import { api, ApiError, type SessionsQuery } from './api.ts'
import { reloadForNewStore } from './store-change.ts'
import { LiveStream, type LiveState } from './live-stream.ts'
import { currentToken, onToken } from './tab-token.ts'

const STALE_MS = 5_000
const PENDING_MS = 15_000
const USAGE_MS = 60_000
const TRIES = 2

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: STALE_MS,
      refetchOnWindowFocus: true,
      // A refused request would be refused again.
      retry: (count, error) =>
        count < TRIES && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
    },
  },
})

export const live = new LiveStream(reloadForNewStore)

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (listener) => live.subscribe(listener),
    () => live.state,
  )
}

export function useToken(): string | null {
  return useSyncExternalStore(onToken, currentToken)
}

export function useMe() {
  return useQuery({ queryKey: ['me'], queryFn: ({ signal }) => api.me(signal) })
}

export function useHealth() {
  return useQuery({ queryKey: ['health'], queryFn: ({ signal }) => api.health(signal), refetchInterval: PENDING_MS })
}

/** The pending calls of all sessions. They are polled in the background too, since a hidden tab still counts them. */
export function usePending() {
  return useQuery({
    queryKey: ['pending'],
    queryFn: ({ signal }) => api.pending(signal),
    refetchInterval: PENDING_MS,
    refetchIntervalInBackground: true,
  })
}

/** Spending by day, and in the last hour. */
export function useUsage(days: number) {
  return useQuery({
    queryKey: ['usage', days],
    queryFn: ({ signal }) => api.usage({ days }, signal),
    refetchInterval: ({ state }) => (state.data?.complete === false ? STALE_MS : USAGE_MS),
  })
}

/** Only admins may list tokens. */
export function useTokens(wanted: boolean) {
  return useQuery({ queryKey: ['tokens'], queryFn: ({ signal }) => api.tokens(signal), enabled: wanted })
}

export function useAgents() {
  return useQuery({ queryKey: ['agents'], queryFn: ({ signal }) => api.agents(signal) })
}

export function useDue() {
  return useQuery({ queryKey: ['due'], queryFn: ({ signal }) => api.due(signal), refetchInterval: PENDING_MS })
}

export function useCronJobs() {
  return useQuery({ queryKey: ['cron'], queryFn: ({ signal }) => api.cron(signal), refetchInterval: PENDING_MS })
}

/** Empty texts ask for all. */
export function useTriggers(source: string, decision: string) {
  return useQuery({
    queryKey: ['triggers', source, decision],
    queryFn: ({ signal }) => api.triggers({ source: source || undefined, decision: decision || undefined }, signal),
    refetchInterval: PENDING_MS,
    placeholderData: keepPreviousData,
  })
}

/** The logs of all lanes are read for it, so it is asked for seldom. */
export function useLetters() {
  return useQuery({ queryKey: ['letters'], queryFn: ({ signal }) => api.letters(signal), refetchInterval: USAGE_MS })
}

export function useEvals() {
  return useQuery({ queryKey: ['evals'], queryFn: ({ signal }) => api.evals(signal), refetchInterval: PENDING_MS })
}

/** A report never changes. An empty `before` compares it with none. */
export function useEvalRun(session: string, before: string) {
  return useQuery({
    queryKey: ['evals', session, before],
    queryFn: ({ signal }) => api.evalRun(session, before || undefined, signal),
    enabled: session !== '',
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  })
}

/** The list of sessions, page by page. */
export function useSessions(query: SessionsQuery, isWanted = true) {
  return useInfiniteQuery({
    queryKey: ['sessions', query],
    queryFn: ({ signal, pageParam }) =>
      api.sessions(pageParam === null ? query : { ...query, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    enabled: isWanted,
  })
}
