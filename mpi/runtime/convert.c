/* Handles as integers, for Fortran (MPI 5.0, 19.3.4). They are small numbers in C, too (handle.h). */
#include <stdint.h>

#include "mpi_functions.h"

int mpi_comm_toint(MPI_Comm comm)
{
    return (int)(intptr_t)comm;
}

MPI_Comm mpi_comm_fromint(int comm)
{
    return (MPI_Comm)(intptr_t)comm;
}

int mpi_errhandler_toint(MPI_Errhandler errhandler)
{
    return (int)(intptr_t)errhandler;
}

MPI_Errhandler mpi_errhandler_fromint(int errhandler)
{
    return (MPI_Errhandler)(intptr_t)errhandler;
}

int mpi_file_toint(MPI_File file)
{
    return (int)(intptr_t)file;
}

MPI_File mpi_file_fromint(int file)
{
    return (MPI_File)(intptr_t)file;
}

int mpi_group_toint(MPI_Group group)
{
    return (int)(intptr_t)group;
}

MPI_Group mpi_group_fromint(int group)
{
    return (MPI_Group)(intptr_t)group;
}

int mpi_info_toint(MPI_Info info)
{
    return (int)(intptr_t)info;
}

MPI_Info mpi_info_fromint(int info)
{
    return (MPI_Info)(intptr_t)info;
}

int mpi_message_toint(MPI_Message message)
{
    return (int)(intptr_t)message;
}

MPI_Message mpi_message_fromint(int message)
{
    return (MPI_Message)(intptr_t)message;
}

int mpi_op_toint(MPI_Op op)
{
    return (int)(intptr_t)op;
}

MPI_Op mpi_op_fromint(int op)
{
    return (MPI_Op)(intptr_t)op;
}

int mpi_request_toint(MPI_Request request)
{
    return (int)(intptr_t)request;
}

MPI_Request mpi_request_fromint(int request)
{
    return (MPI_Request)(intptr_t)request;
}

int mpi_session_toint(MPI_Session session)
{
    return (int)(intptr_t)session;
}

MPI_Session mpi_session_fromint(int session)
{
    return (MPI_Session)(intptr_t)session;
}

int mpi_type_toint(MPI_Datatype datatype)
{
    return (int)(intptr_t)datatype;
}

MPI_Datatype mpi_type_fromint(int datatype)
{
    return (MPI_Datatype)(intptr_t)datatype;
}

int mpi_win_toint(MPI_Win win)
{
    return (int)(intptr_t)win;
}

MPI_Win mpi_win_fromint(int win)
{
    return (MPI_Win)(intptr_t)win;
}
