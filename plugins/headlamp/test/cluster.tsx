import { configureStore } from "@reduxjs/toolkit";
import reducers from "@kinvolk/headlamp-plugin/lib/redux/reducers/reducers";
import { lightTheme } from "@kinvolk/headlamp-plugin/lib/components/App/defaultAppThemes";
import { createMuiTheme } from "@kinvolk/headlamp-plugin/lib/lib/themes";
import { ThemeProvider } from "@mui/material/styles";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { SnackbarProvider } from "notistack";
import type { ReactNode } from "react";
import { Provider } from "react-redux";
import { MemoryRouter } from "react-router-dom";

/** The API server that `npm run headlamp` has started: ironfence's demo after its outages. */
const API = process.env.IRONFENCE_API ?? "";
const CLUSTER = "main";

const THEME = createMuiTheme(lightTheme);

/** Sends what Headlamp asks its backend for to the API server, as that backend does. */
export function useApiServer(): void {
  if (API === "") throw new Error("IRONFENCE_API names no API server: start these tests with npm run headlamp");
  window.history.replaceState({}, "", `/c/${CLUSTER}/ironfence`);
  const original = globalThis.fetch;
  globalThis.fetch = (input, init) => {
    const { pathname, search } = new URL(String(input), window.location.href);
    const path = pathname.replace(/^\/+clusters\/[^/]+/, "");
    return original(`${API}${path}${search}`, { method: init?.method ?? "GET", body: init?.body });
  };
}

/** What Headlamp puts around each page. */
export function Page({ children }: { children: ReactNode }): ReactNode {
  const store = configureStore({
    reducer: reducers,
    middleware: (getDefault) => getDefault({ serializableCheck: false }),
  });
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  return (
    <Provider store={store}>
      <ThemeProvider theme={THEME}>
        <QueryClientProvider client={queries}>
          <SnackbarProvider>
            <MemoryRouter initialEntries={[`/c/${CLUSTER}/ironfence`]}>{children}</MemoryRouter>
          </SnackbarProvider>
        </QueryClientProvider>
      </ThemeProvider>
    </Provider>
  );
}

/** The objects of one kind, as the API server has them. */
export async function itemsOf<T>(path: string): Promise<T[]> {
  const response = await fetch(`/clusters/${CLUSTER}${path}`);
  const { items } = (await response.json()) as { items: T[] };
  return items;
}
