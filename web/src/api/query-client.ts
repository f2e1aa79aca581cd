import { QueryClient } from "@tanstack/react-query";
import { RequestError } from "./request.ts";

/** A server that is away for a moment is asked again; what it refuses it would refuse again. */
const isPassing = (error: Error): boolean =>
  error instanceof RequestError && (error.status === 0 || error.status === 503);

export const createQueryClient = (): QueryClient =>
  new QueryClient({
    defaultOptions: {
      queries: { retry: (failures, error) => failures < 3 && isPassing(error), staleTime: 5_000 },
    },
  });
